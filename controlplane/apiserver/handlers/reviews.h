// TokenReviews, SubjectAccessReviews and related kinds. Nothing is stored.
#pragma once

#include <memory>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/authn/authenticator.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/endpoints/context.h"

namespace keelson::apiserver {

class ReviewHandler {  // thread safe
 public:
  ReviewHandler(const Authenticator& authenticator, const Authorizer& authorizer,
                const AdmissionChain& admission)
      : authenticator_(authenticator), authorizer_(authorizer), admission_(admission) {}

  static bool Serves(const api::ResourceInfo& resource);
  void Handle(Context& context) const;

 private:
  Result<> Answer(Context& context, api::Message& review) const;
  Result<> TokenReview(authenticationv1::TokenReview& review) const;
  Result<> RulesReview(const User& user, authorizationv1::SelfSubjectRulesReview& review) const;
  Result<> Access(const User& user, const authorizationv1::ResourceAttributes* resource,
                  const authorizationv1::NonResourceAttributes* path,
                  authorizationv1::SubjectAccessReviewStatus& status) const;

  const Authenticator& authenticator_;
  const Authorizer& authorizer_;
  const AdmissionChain& admission_;
};

}  // namespace keelson::apiserver
