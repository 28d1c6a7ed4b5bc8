#include "controlplane/apiserver/bootstrap/role_aggregation.h"

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/base/log.h"

namespace keelson::apiserver {

void RoleAggregator::Put(std::shared_ptr<const rbacv1::ClusterRole> role) {
  MutexLock lock(mutex_);
  roles_[role->metadata().name()] = std::move(role);
  dirty_ = true;
  changed_.notify_all();
}

void RoleAggregator::Remove(const std::string& name) {
  MutexLock lock(mutex_);
  roles_.erase(name);
  dirty_ = true;
  changed_.notify_all();
}

Result<> RoleAggregator::Reconcile(const k8s::ClusterRoles& roles, std::stop_token stop) {
  for (const auto& entry : roles) {
    const rbacv1::ClusterRole& role = *entry.second;
    if (!role.has_aggregation_rule()) continue;
    const k8s::PolicyRules wanted = k8s::AggregateRules(role, roles);
    if (k8s::SameRules(wanted, role.rules())) continue;
    auto updated = registry_.Modify(
        api::ResourceOf<rbacv1::ClusterRole>(), "", entry.first,
        [&](api::Message& object) -> Result<> {
          *static_cast<rbacv1::ClusterRole&>(object).mutable_rules() = wanted;
          return {};
        },
        BootstrapWrite(stop));
    if (!updated && !updated.error().Is(Code::kNotFound)) {
      return updated.error().Wrap("aggregate " + entry.first);
    }
  }
  return {};
}

void RoleAggregator::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    k8s::ClusterRoles roles;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return dirty_; });
      dirty_ = false;
      roles = roles_;
    }
    if (stop.stop_requested()) return;
    Result<> done = Reconcile(roles, stop);
    if (done) continue;
    log::Warn("Cannot write aggregated roles", {{"err", done.error()}});
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, stop, std::chrono::seconds(1), [] { return false; });
    dirty_ = true;
  }
}

}  // namespace keelson::apiserver
