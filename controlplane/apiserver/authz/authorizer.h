// May this user do that?
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

// What is asked for. `request.path` and `request.verb` alone count when it is no resource request.
struct Attributes {
  const User& user;
  const RequestInfo& request;
};

struct Decision {
  bool allowed = false;
  std::string reason;            // for reviews and messages; may be empty
  std::string evaluation_error;  // roles that could not be found, ...
  bool denied = false;           // no authorizer after this one is asked
};

struct PolicyRule {
  std::vector<std::string> verbs, groups, resources, names, urls;
};

struct UserRules {
  std::vector<PolicyRule> rules;
  bool incomplete = false;  // there may be more that cannot be told beforehand
  std::string error;        // why
};

class Authorizer {  // thread safe
 public:
  virtual ~Authorizer() = default;
  virtual Decision Authorize(const Attributes& attributes) const = 0;
  // All rules that hold for the user in a namespace (cluster-wide ones included).
  virtual UserRules RulesFor(const User& user, std::string_view ns) const = 0;
};

// In order; the first that allows or denies wins.
class UnionAuthorizer : public Authorizer {
 public:
  using List = std::vector<std::shared_ptr<const Authorizer>>;
  explicit UnionAuthorizer(List all) : all_(std::make_shared<const List>(std::move(all))) {}
  // For requests that come from now on.
  void Replace(List all) { all_.store(std::make_shared<const List>(std::move(all))); }
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;

 private:
  std::atomic<std::shared_ptr<const List>> all_;
};

// The group system:masters may do everything; no policy can take that away. Its rules are RBAC's to tell.
class MastersAuthorizer : public Authorizer {
 public:
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;
};

bool Allows(const PolicyRule& rule, const RequestInfo& request);

// "a", "[a, b]": errors in one, each once.
std::string Aggregate(const std::vector<std::string>& errors);

// 403 in upstream's words:
//   pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "default"
Error ForbiddenTo(const Attributes& attributes, std::string_view reason = "");

}  // namespace keelson::apiserver
