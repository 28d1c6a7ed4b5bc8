// The node authorizer: what a kubelet (user system:node:NAME in group system:nodes) may do.
//
// The rights are those of NodeRules(). Which secrets, config maps and volumes belong to the node's own pods
// is not looked at here: a node may read each by name, but list or watch none of them all at once. What a
// node may write is narrowed down by the NodeRestriction admission plugin.
#pragma once

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// "n1" of system:node:n1 in system:nodes; empty for anybody else.
std::string NodeNameOf(const User& user);

class NodeAuthorizer : public Authorizer {
 public:
  NodeAuthorizer();
  Decision Authorize(const Attributes& attributes) const override;
  std::vector<PolicyRule> RulesFor(const User& user, std::string_view ns) const override;

 private:
  std::vector<PolicyRule> rules_;
};

}  // namespace keelson::apiserver
