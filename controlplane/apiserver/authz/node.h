// The node authorizer: permissions of a kubelet (user system:node:NAME in group system:nodes).
//
// A kubelet may read secrets, config maps, claims, volumes, pods and nodes only if they relate to its node (see
// NodeGraph). NodeRules() covers everything else. The admission plugin NodeRestriction restricts writes further,
// because it sees the objects.
#pragma once

#include <memory>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/node_graph.h"

namespace keelson::apiserver {

// "n1" for the user system:node:n1 in system:nodes; empty for other users.
std::string NodeNameOf(const User& user);

class NodeAuthorizer : public Authorizer {
 public:
  NodeAuthorizer(std::shared_ptr<const NodeGraph> graph, const GateOn& on);
  Decision Authorize(const Attributes& attributes) const override;
  UserRules RulesFor(const User& user, std::string_view ns) const override;

 private:
  const std::shared_ptr<const NodeGraph> graph_;
  std::vector<PolicyRule> rules_;
};

}  // namespace keelson::apiserver
