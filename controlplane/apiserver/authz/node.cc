#include "controlplane/apiserver/authz/node.h"

#include <algorithm>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/rbac.h"

namespace keelson::apiserver {

std::string NodeNameOf(const User& user) {
  std::string_view name = user.name;
  if (name.substr(0, kUserNodePrefix.size()) != kUserNodePrefix || !user.InGroup(kGroupNodes)) return "";
  return std::string(name.substr(kUserNodePrefix.size()));
}

NodeAuthorizer::NodeAuthorizer() {
  for (const rbacv1::PolicyRule& rule : NodeRules()) rules_.push_back(ToRule(rule));
}

Decision NodeAuthorizer::Authorize(const Attributes& attributes) const {
  std::string node = NodeNameOf(attributes.user);
  if (node.empty()) return {};
  const RequestInfo& request = attributes.request;
  bool allowed =
      std::any_of(rules_.begin(), rules_.end(), [&](const PolicyRule& r) { return Allows(r, request); });
  if (!allowed) return {};
  if (!request.group.empty()) {
    // A node's lease, and its CSINode, have its name.
    bool own = request.resource == "leases" || request.resource == "csinodes";
    if (own && !request.name.empty() && request.name != node) {
      return {false, "can only access node lease with the same name as the requesting node", ""};
    }
    if (request.resource == "leases" && request.ns != "kube-node-lease") {
      return {false, "can only access leases in the \"kube-node-lease\" system namespace", ""};
    }
    return {true, "", ""};
  }
  bool by_name = request.resource == "secrets" || request.resource == "configmaps";
  if (by_name && request.name.empty()) {
    return {false, "No Object name found", ""};
  }
  return {true, "", ""};
}

std::vector<PolicyRule> NodeAuthorizer::RulesFor(const User& user, std::string_view) const {
  return NodeNameOf(user).empty() ? std::vector<PolicyRule>() : rules_;
}

}  // namespace keelson::apiserver
