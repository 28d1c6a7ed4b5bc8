// ClusterRoles with an aggregationRule: their rules are those of all roles that the rule's selectors match.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/registry/registry.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

class RoleAggregator {  // thread safe
 public:
  explicit RoleAggregator(registry::Registry& registry) : registry_(registry) {}
  // Changes of ClusterRoles, from a Follower.
  void Put(std::shared_ptr<const rbacv1::ClusterRole> role);
  void Remove(const std::string& name);
  // Writes rules that are not as they should be, after every change, until `stop`.
  void Run(std::stop_token stop);

  // The rules that `role` should have, given all roles by name.
  using Roles = std::map<std::string, std::shared_ptr<const rbacv1::ClusterRole>>;
  static google::protobuf::RepeatedPtrField<rbacv1::PolicyRule> Aggregate(const rbacv1::ClusterRole& role,
                                                                          const Roles& all);

 private:
  Result<> Reconcile(const Roles& roles, std::stop_token stop);

  registry::Registry& registry_;
  Mutex mutex_;
  CondVar changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  Roles roles_ GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
