// The authorizer of admission expressions: authorizer.group('apps').resource('deployments').check('create').allowed().
// The API server has the implementation.
#pragma once

#include <string>

#include "lib/cel/values/value.h"

namespace keelson::cel {

// What an expression asks. A check of a path has no resource; of a resource, no path. Upstream asks for API version "*".
struct AuthorizationQuestion {
  std::string verb;
  std::string path;
  std::string group, resource, subresource, namespace_name, name;
  std::string field_selector, label_selector;  // as written; one that does not parse counts as absent
  // The user of the check, if it is not the user of the request.
  std::string service_account_namespace, service_account_name;
};

struct AuthorizationAnswer {
  bool allowed = false;
  bool errored = false;
  std::string reason, error;
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual AuthorizationAnswer Check(const AuthorizationQuestion& question) const = 0;
};

// The variable `authorizer`, and `authorizer.requestResource` with what the question says of the request. The authorizer
// has to outlive the value.
Value AuthorizerVariable(const Authorizer& authorizer, Arena& arena);
Value ResourceCheckVariable(const Authorizer& authorizer, AuthorizationQuestion question, Arena& arena);

}  // namespace keelson::cel
