// The interface of authorizers.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/request_info.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

// A request to authorize. For a non-resource request only `request.path` and `request.verb` count.
struct Attributes {
  const User& user;
  const RequestInfo& request;
};

struct Decision {
  bool allowed = false;
  std::string reason;            // for reviews and messages; may be empty
  std::string evaluation_error;  // for example a missing role
  bool denied = false;           // final: no further authorizer is consulted
};

struct PolicyRule {
  std::vector<std::string> verbs, groups, resources, names, urls;
};

struct UserRules {
  std::vector<PolicyRule> rules;
  bool incomplete = false;  // there may be more rules, which cannot be listed
  std::string error;        // the cause
};

class Authorizer {  // thread safe
 public:
  virtual ~Authorizer() = default;
  virtual Decision Authorize(const Attributes& attributes) const = 0;
  // All rules of the user in a namespace, including cluster-wide ones.
  virtual UserRules RulesFor(const User& user, std::string_view ns) const = 0;
};

// Consults the authorizers in order; the first that allows or denies decides.
class UnionAuthorizer : public Authorizer {
 public:
  using List = std::vector<std::shared_ptr<const Authorizer>>;
  explicit UnionAuthorizer(List all) : all_(std::make_shared<const List>(std::move(all))) {}
  // Applies to later requests.
  void Replace(List all) { all_.store(std::make_shared<const List>(std::move(all))); }
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;

 private:
  std::atomic<std::shared_ptr<const List>> all_;
};

// Allows everything to the group system:masters, regardless of policy. RulesFor() returns none: RBAC lists
// them.
class MastersAuthorizer : public Authorizer {
 public:
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;
};

bool Allows(const PolicyRule& rule, const RequestInfo& request);

// Joins distinct errors: "a", or "[a, b]".
std::string Aggregate(const std::vector<std::string>& errors);

// kForbidden in upstream's wording:
//   pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "default"
Error ForbiddenTo(const Attributes& attributes, std::string_view reason = "");

}  // namespace keelson::apiserver
