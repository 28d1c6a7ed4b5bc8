// The variable `authorizer`: asks the API server's own authorizers.
#pragma once

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/cel/library/authorizer.h"

namespace keelson::apiserver {

// Answers for the user of a request, or for a service account that the expression names. Both have to outlive this.
class ExpressionAuthorizer : public cel::Authorizer {
 public:
  ExpressionAuthorizer(const apiserver::Authorizer& authorizer, const User& user)
      : authorizer_(authorizer), user_(user) {}
  cel::AuthorizationAnswer Check(const cel::AuthorizationQuestion& question) const override;

 private:
  const apiserver::Authorizer& authorizer_;
  const User& user_;
};

}  // namespace keelson::apiserver
