// The roles and bindings that every cluster has, by upstream's names: what users build on (cluster-admin,
// admin, edit, view) and what the components need.
#pragma once

#include <vector>

#include "controlplane/apiserver/authz/authorizer.h"
#include "lib/api/types.h"

namespace keelson::apiserver {

std::vector<rbacv1::ClusterRole> BootstrapClusterRoles();
std::vector<rbacv1::ClusterRoleBinding> BootstrapClusterRoleBindings();
std::vector<rbacv1::Role> BootstrapRoles();
std::vector<rbacv1::RoleBinding> BootstrapRoleBindings();
// What a kubelet may do; also the rules of the ClusterRole system:node.
std::vector<rbacv1::PolicyRule> NodeRules();

}  // namespace keelson::apiserver
