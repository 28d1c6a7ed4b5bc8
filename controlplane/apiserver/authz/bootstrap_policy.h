// The roles and bindings that every cluster has, by upstream's names: what users build on (cluster-admin,
// admin, edit, view) and what the components need. They are upstream's to the letter; what this project needs
// beyond them has names of its own, keelson:...
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/api/types.h"

namespace keelson::apiserver {

// Whether a feature gate is on: some rules are there only then.
using GateOn = std::function<bool(std::string_view gate)>;
inline bool NoGate(std::string_view) { return false; }

std::vector<rbacv1::ClusterRole> BootstrapClusterRoles(const GateOn& on);
std::vector<rbacv1::ClusterRoleBinding> BootstrapClusterRoleBindings(const GateOn& on);
std::vector<rbacv1::Role> BootstrapRoles();
std::vector<rbacv1::RoleBinding> BootstrapRoleBindings();
// What a kubelet may do; also the rules of the ClusterRole system:node.
std::vector<rbacv1::PolicyRule> NodeRules(const GateOn& on);

}  // namespace keelson::apiserver
