// The default roles and bindings of every cluster: user-facing roles (cluster-admin, admin, edit, view) and
// component roles. They equal upstream's exactly; this project's additional roles are named keelson:...
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/api/types.h"

namespace keelson::apiserver {

// Whether a feature gate is enabled: some rules depend on one.
using GateOn = std::function<bool(std::string_view gate)>;
inline bool NoGate(std::string_view) { return false; }

std::vector<rbacv1::ClusterRole> BootstrapClusterRoles(const GateOn& on);
std::vector<rbacv1::ClusterRoleBinding> BootstrapClusterRoleBindings(const GateOn& on);
std::vector<rbacv1::Role> BootstrapRoles();
std::vector<rbacv1::RoleBinding> BootstrapRoleBindings();
// The permissions of a kubelet; also the rules of the ClusterRole system:node.
std::vector<rbacv1::PolicyRule> NodeRules(const GateOn& on);

}  // namespace keelson::apiserver
