#include <algorithm>

#include "controlplane/apiserver/authz/policy_tables.h"

namespace keelson::apiserver {
namespace {

// Permissions of controllers that run as the user system:kube-controller-manager. Without `escalate`: only
// the API server itself aggregates roles.
std::vector<RuleRow> ManagerRules() {
  std::vector<RuleRow> all;
  for (const RoleRow& role : ControllerRoles()) {
    if (role.name == "clusterrole-aggregation-controller") continue;
    for (RuleRow rule : role.rules) {
      if (rule.gates.empty()) rule.gates = role.gates;
      if (std::find(all.begin(), all.end(), rule) == all.end()) all.push_back(rule);
    }
  }
  return all;
}

}  // namespace

std::vector<RoleRow> OwnRoles() {
  return {
      {kOwnManagerRole, ManagerRules(), "", ""},
      // Upstream's role comes with metrics-server; here this server serves metrics.k8s.io.
      {"keelson:aggregated-metrics-reader", {{kRead, "metrics.k8s.io", "nodes,pods", "", ""}}, "view", ""},
  };
}

}  // namespace keelson::apiserver
