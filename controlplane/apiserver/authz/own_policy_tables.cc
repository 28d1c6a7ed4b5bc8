#include <algorithm>

#include "controlplane/apiserver/authz/policy_tables.h"

namespace keelson::apiserver {
namespace {

// What controllers need that run as the user system:kube-controller-manager. Aggregation is the API server's
// own: nobody else needs to escalate.
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
      // Upstream's comes with what serves metrics.k8s.io, which is this server.
      {"keelson:aggregated-metrics-reader", {{kRead, "metrics.k8s.io", "nodes,pods", "", ""}}, "view", ""},
  };
}

}  // namespace keelson::apiserver
