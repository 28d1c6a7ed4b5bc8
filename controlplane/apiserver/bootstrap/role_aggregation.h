// Maintains the rules of ClusterRoles with an aggregationRule.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/registry/registry.h"
#include "lib/base/mutex.h"
#include "lib/k8s/aggregate_rules.h"

namespace keelson::apiserver {

class RoleAggregator {  // thread safe
 public:
  explicit RoleAggregator(registry::Registry& registry) : registry_(registry) {}
  // Changes of ClusterRoles, from a Reflector.
  void Put(std::shared_ptr<const rbacv1::ClusterRole> role);
  void Remove(const std::string& name);
  // After each change, writes rules that differ from the aggregation. Runs until `stop`.
  void Run(std::stop_token stop);

 private:
  Result<> Reconcile(const k8s::ClusterRoles& roles, std::stop_token stop);

  registry::Registry& registry_;
  Mutex mutex_;
  CondVar changed_;
  bool dirty_ KEELSON_GUARDED_BY(mutex_) = false;
  k8s::ClusterRoles roles_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver
