#include "controlplane/apiserver/authz/aggregation.h"

#include <set>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "lib/api/codec.h"
#include "lib/api/selector.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

using Rules = google::protobuf::RepeatedPtrField<rbacv1::PolicyRule>;

std::string Bytes(const Rules& rules) {
  std::string out;
  for (const rbacv1::PolicyRule& rule : rules) out += api::EncodeRaw(rule) + '\n';
  return out;
}

}  // namespace

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

Rules RoleAggregator::Aggregate(const rbacv1::ClusterRole& role, const Roles& all) {
  Rules out;
  std::set<std::string> seen;
  for (const metav1::LabelSelector& wanted : role.aggregation_rule().cluster_role_selectors()) {
    Result<api::LabelSelector> selector = api::LabelSelector::From(wanted);
    if (!selector) continue;
    for (const auto& entry : all) {
      if (entry.first == role.metadata().name() || !selector->Matches(entry.second->metadata().labels()))
        continue;
      for (const rbacv1::PolicyRule& rule : entry.second->rules()) {
        if (seen.insert(api::EncodeRaw(rule)).second) *out.Add() = rule;
      }
    }
  }
  return out;
}

Result<> RoleAggregator::Reconcile(const Roles& roles, std::stop_token stop) {
  for (const auto& entry : roles) {
    const rbacv1::ClusterRole& role = *entry.second;
    if (!role.has_aggregation_rule()) continue;
    Rules wanted = Aggregate(role, roles);
    if (Bytes(wanted) == Bytes(role.rules())) continue;
    auto updated = registry_.Modify(
        api::ResourceOf<rbacv1::ClusterRole>(), "", entry.first,
        [&](api::Message& object) -> Result<> {
          *static_cast<rbacv1::ClusterRole&>(object).mutable_rules() = wanted;
          return {};
        },
        BootstrapWrite(stop));
    if (!updated && !updated.error().Is(Code::kNotFound))
      return updated.error().Wrap("aggregate " + entry.first);
  }
  return {};
}

void RoleAggregator::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Roles roles;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() NO_THREAD_SAFETY_ANALYSIS { return dirty_; });
      dirty_ = false;
      roles = roles_;
    }
    if (stop.stop_requested()) return;
    Result<> done = Reconcile(roles, stop);
    if (done) continue;
    log::Warn("Cannot write aggregated roles", {{"error", done.error()}});
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, stop, std::chrono::seconds(1), [] { return false; });
    dirty_ = true;
  }
}

}  // namespace keelson::apiserver
