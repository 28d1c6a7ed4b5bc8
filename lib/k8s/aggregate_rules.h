// ClusterRoles with an aggregationRule: their rules are the union of the rules of all roles that its
// selectors match.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lib/api/types.h"

namespace keelson::k8s {

using ClusterRoles = std::map<std::string, std::shared_ptr<const rbacv1::ClusterRole>>;  // by name
using PolicyRules = google::protobuf::RepeatedPtrField<rbacv1::PolicyRule>;

// The rules that `role` should have, without duplicates, in the order of selectors and names.
PolicyRules AggregateRules(const rbacv1::ClusterRole& role, const ClusterRoles& all);
bool SameRules(const PolicyRules& a, const PolicyRules& b);

}  // namespace keelson::k8s
