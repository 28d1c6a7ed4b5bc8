#include "controlplane/scheduler/types/spread_spec.h"

#include "lib/api/codec/codec.h"

namespace keelson::scheduler {

namespace {

api::LabelSelector DefaultSelector(const corev1::TopologySpreadConstraint& constraint,
                                   const api::LabelMap& labels) {
  if (!constraint.has_label_selector()) return api::LabelSelector::Nothing();
  metav1::LabelSelector selector = constraint.label_selector();
  // The API server has done this already, if it is new enough: twice does no harm.
  for (const std::string& key : constraint.match_label_keys()) {
    const auto it = labels.find(key);
    if (it == labels.end()) continue;
    metav1::LabelSelectorRequirement& requirement = *selector.add_match_expressions();
    requirement.set_key(key);
    requirement.set_operator_("In");
    requirement.add_values(it->second);
  }
  return api::LabelSelector::From(selector).value_or(api::LabelSelector::Nothing());
}

}  // namespace

SpreadConstraint::SpreadConstraint(const corev1::TopologySpreadConstraint& constraint,
                                   const api::LabelMap& labels, NameIds& keys)
    : key(keys.Id(constraint.topology_key())),
      hostname(constraint.topology_key() == "kubernetes.io/hostname"),
      max_skew(constraint.max_skew()),
      min_domains(constraint.has_min_domains() ? constraint.min_domains() : 1),
      selector(DefaultSelector(constraint, labels)),
      honor_affinity(constraint.node_affinity_policy() != "Ignore"),
      honor_taints(constraint.node_taints_policy() == "Honor"),
      self(selector.Matches(labels)) {}

SpreadSpec::SpreadSpec(uint64_t i, const corev1::Pod& pod, NameIds& keys)
    : id(i), ns(pod.metadata().namespace_()), affinity(pod.spec()), tolerations(pod.spec().tolerations()) {
  for (const auto& constraint : pod.spec().topology_spread_constraints()) {
    Add(constraint, pod.metadata().labels(), keys);
  }
}

SpreadSpec::SpreadSpec(uint64_t i, std::string n, const k8s::RequiredNodeAffinity& a,
                       const k8s::Tolerations& t, const api::LabelMap& labels,
                       const std::vector<corev1::TopologySpreadConstraint>& constraints, bool all_keys,
                       NameIds& keys)
    : id(i), ns(std::move(n)), affinity(a), tolerations(t), needs_all_keys(all_keys) {
  for (const auto& constraint : constraints) Add(constraint, labels, keys);
}

void SpreadSpec::Add(const corev1::TopologySpreadConstraint& constraint, const api::LabelMap& labels,
                     NameIds& keys) {
  const bool is_hard = constraint.when_unsatisfiable() != "ScheduleAnyway";
  (is_hard ? hard : soft).emplace_back(constraint, labels, keys);
}

std::shared_ptr<const SpreadSpec> SpreadOf(const corev1::Pod& pod, Vocabulary& words) {
  if (pod.spec().topology_spread_constraints().empty()) return nullptr;
  corev1::PodSpec alike;
  *alike.mutable_topology_spread_constraints() = pod.spec().topology_spread_constraints();
  *alike.mutable_node_selector() = pod.spec().node_selector();
  *alike.mutable_tolerations() = pod.spec().tolerations();
  if (pod.spec().affinity().has_node_affinity()) {
    *alike.mutable_affinity()->mutable_node_affinity() = pod.spec().affinity().node_affinity();
  }
  std::string key = api::EncodeRaw(alike) + '\n' + pod.metadata().namespace_();
  // Of the labels only that counts which selectors make of them.
  for (const auto& constraint : alike.topology_spread_constraints()) {
    const api::LabelSelector selector = DefaultSelector(constraint, pod.metadata().labels());
    key += '\n' + selector.ToString() + (selector.Matches(pod.metadata().labels()) ? "+" : "-");
  }
  return words.spreads.Get(key, pod, words.topology_keys);
}

}  // namespace keelson::scheduler
