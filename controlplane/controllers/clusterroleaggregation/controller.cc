#include "controlplane/controllers/clusterroleaggregation/controller.h"

#include "lib/k8s/aggregate_rules.h"

namespace keelson::controllers {

ClusterRoleAggregationController::ClusterRoleAggregationController(client::RestClient api,
                                                                   client::InformerFactory& informers,
                                                                   client::EventRecorder&, Clock& clock)
    : Controller("ClusterRoleAggregator", clock, 5),
      api_(std::move(api)),
      roles_(informers.Get<rbacv1::ClusterRole>()) {
  roles_.AddHandler([this](const client::Change<rbacv1::ClusterRole>&) {
    for (const auto& role : roles_.List()) {
      if (role->has_aggregation_rule()) queue().Add(role->metadata().name());
    }
  });
}

Result<Requeue> ClusterRoleAggregationController::Reconcile(const std::string& key, std::stop_token stop) {
  auto role = roles_.Get(key);
  if (!role || !role->has_aggregation_rule()) return Requeue{};
  k8s::ClusterRoles all;
  for (auto& one : roles_.List()) {
    std::string name = one->metadata().name();
    all.emplace(std::move(name), std::move(one));
  }
  const k8s::PolicyRules wanted = k8s::AggregateRules(*role, all);
  if (k8s::SameRules(wanted, role->rules())) return Requeue{};
  rbacv1::ClusterRole changed = *role;
  *changed.mutable_rules() = wanted;
  Result<rbacv1::ClusterRole> stored = api_.With(stop).Update(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return Requeue{};
}

}  // namespace keelson::controllers
