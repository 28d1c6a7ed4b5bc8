// Internal to authz/: the tables behind bootstrap_policy.h.
#pragma once

#include <string_view>
#include <vector>

#include "controlplane/apiserver/authz/bootstrap_policy.h"

namespace keelson::apiserver {

inline constexpr std::string_view kRead = "get,list,watch";
inline constexpr std::string_view kWrite = "create,delete,deletecollection,patch,update";
inline constexpr std::string_view kReadWrite = "create,delete,deletecollection,get,list,patch,update,watch";

// One rule. `groups` is comma-separated; the empty string is the core group. A rule with `urls` has no groups
// or resources. `gates`: feature gates joined by "+" that must all be enabled for the rule.
struct RuleRow {
  std::string_view verbs, groups, resources, names, urls;
  std::string_view gates = {};

  bool operator==(const RuleRow&) const = default;
};

struct RoleRow {
  std::string_view name;
  std::vector<RuleRow> rules;
  std::string_view aggregate_to;    // admin, edit, view: the role that aggregates these rules
  std::string_view aggregate_from;  // suffix of the label that this role aggregates
  std::string_view gates = {};      // as for rules
};

inline RuleRow UrlsRule(std::string_view urls, std::string_view verbs = "get") {
  return {verbs, "", "", "", urls};
}
inline RuleRow EventsRule() { return {"create,patch,update", ",events.k8s.io", "events", "", ""}; }

const std::vector<RuleRow>& NodeRuleRows();
std::vector<RoleRow> UserRoles();
std::vector<RoleRow> AccessRoles();
std::vector<RoleRow> ComponentRoles();
// Named system:controller:NAME, and bound to the ServiceAccount kube-system/NAME.
std::vector<RoleRow> ControllerRoles();
// This project's own roles, named keelson:.... Upstream's API servers neither create nor repair them.
std::vector<RoleRow> OwnRoles();
// Bound to the user system:kube-controller-manager, for controllers without a service account of their own
// (--use-service-account-credentials).
inline constexpr std::string_view kOwnManagerRole = "keelson:kube-controller-manager";

rbacv1::PolicyRule ToProto(const RuleRow& row);
// True when all of "A+B" are enabled, or `gates` is empty.
bool GatesOn(std::string_view gates, const GateOn& on);

}  // namespace keelson::apiserver
