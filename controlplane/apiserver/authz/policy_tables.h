// Internal to authz/: the rules behind bootstrap_policy.h, as tables.
#pragma once

#include <string_view>
#include <vector>

#include "controlplane/apiserver/authz/bootstrap_policy.h"

namespace keelson::apiserver {

inline constexpr std::string_view kRead = "get,list,watch";
inline constexpr std::string_view kWrite = "create,delete,deletecollection,patch,update";
inline constexpr std::string_view kReadWrite = "create,delete,deletecollection,get,list,patch,update,watch";

// One rule of a table. `groups` is a comma-separated list in which nothing stands for the core group.
// A rule with `urls` has neither groups nor resources. `gates`: feature gates, joined by "+", that must all
// be on for the rule to be there.
struct RuleRow {
  std::string_view verbs, groups, resources, names, urls;
  std::string_view gates = {};

  bool operator==(const RuleRow&) const = default;
};

struct RoleRow {
  std::string_view name;
  std::vector<RuleRow> rules;
  std::string_view aggregate_to;    // admin, edit, view: the role that takes these rules in
  std::string_view aggregate_from;  // the label's suffix that this role is made of
  std::string_view gates = {};      // as of rules
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
// This project's own, named keelson:..., which upstream's API servers neither make nor repair.
std::vector<RoleRow> OwnRoles();
// Bound to the user system:kube-controller-manager, as which controllers run that have no accounts of their
// own (--use-service-account-credentials).
inline constexpr std::string_view kOwnManagerRole = "keelson:kube-controller-manager";

rbacv1::PolicyRule ToProto(const RuleRow& row);
// Whether all of "A+B" are on; nothing is always there.
bool GatesOn(std::string_view gates, const GateOn& on);

}  // namespace keelson::apiserver
