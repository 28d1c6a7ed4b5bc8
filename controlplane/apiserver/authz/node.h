// The node authorizer: what a kubelet (user system:node:NAME in group system:nodes) may do.
//
// It may read what belongs to its own node (see NodeGraph) and no more of secrets, config maps, claims,
// volumes, pods and nodes; all else is as NodeRules() say. What it may write is narrowed down further by the
// NodeRestriction admission plugin, which sees the objects.
#pragma once

#include <memory>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/node_graph.h"

namespace keelson::apiserver {

// "n1" of system:node:n1 in system:nodes; empty for anybody else.
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
