#include "controlplane/scheduler/types/pod_class.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

// The API server has put these into the selector already, if it is new enough: twice does no harm.
metav1::LabelSelector WithKeys(const corev1::PodAffinityTerm& term, const api::LabelMap& labels) {
  metav1::LabelSelector selector = term.label_selector();
  const auto add = [&](const auto& keys, const char* op) {
    for (const std::string& key : keys) {
      const auto it = labels.find(key);
      if (it == labels.end()) continue;
      metav1::LabelSelectorRequirement& requirement = *selector.add_match_expressions();
      requirement.set_key(key);
      requirement.set_operator_(op);
      requirement.add_values(it->second);
    }
  };
  add(term.match_label_keys(), "In");
  add(term.mismatch_label_keys(), "NotIn");
  return selector;
}

}  // namespace

AffinityTerm::AffinityTerm(const corev1::PodAffinityTerm& term, int32_t w, const metav1::ObjectMeta& owner,
                           NameIds& keys)
    : key(keys.Id(term.topology_key())),
      weight(w),
      selector(term.has_label_selector() ? api::LabelSelector::From(WithKeys(term, owner.labels()))
                                               .value_or(api::LabelSelector::Nothing())
                                         : api::LabelSelector::Nothing()),
      namespaces(term.namespaces().begin(), term.namespaces().end()),
      by_namespace_labels(term.has_namespace_selector()) {
  if (by_namespace_labels) {
    namespace_selector =
        api::LabelSelector::From(term.namespace_selector()).value_or(api::LabelSelector::Nothing());
  } else if (namespaces.empty()) {
    namespaces.push_back(owner.namespace_());
  }
  std::sort(namespaces.begin(), namespaces.end());
}

bool AffinityTerm::Matches(const PodClass& pod, const NamespaceLabels& known) const {
  if (!std::binary_search(namespaces.begin(), namespaces.end(), pod.ns)) {
    if (!by_namespace_labels) return false;
    const auto it = known.find(pod.ns);
    if (!namespace_selector.Matches(it == known.end() ? api::LabelMap() : it->second)) return false;
  }
  return selector.Matches(pod.labels);
}

PodClass::PodClass(uint64_t i, const corev1::Pod& pod, NameIds& keys)
    : id(i),
      ns(pod.metadata().namespace_()),
      labels(pod.metadata().labels()),
      terminating(k8s::IsTerminating(pod)) {
  const auto add = [&](std::vector<AffinityTerm>& to, const corev1::PodAffinityTerm& term, int32_t weight) {
    to.emplace_back(term, weight, pod.metadata(), keys);
  };
  const corev1::PodAffinity& together = pod.spec().affinity().pod_affinity();
  const corev1::PodAntiAffinity& apart = pod.spec().affinity().pod_anti_affinity();
  for (const auto& term : together.required_during_scheduling_ignored_during_execution()) {
    add(affinity, term, 0);
  }
  for (const auto& term : apart.required_during_scheduling_ignored_during_execution()) {
    add(anti_affinity, term, 0);
  }
  for (const auto& term : together.preferred_during_scheduling_ignored_during_execution()) {
    if (term.weight() != 0) add(preferred, term.pod_affinity_term(), term.weight());
  }
  for (const auto& term : apart.preferred_during_scheduling_ignored_during_execution()) {
    if (term.weight() != 0) add(preferred, term.pod_affinity_term(), -term.weight());
  }
}

std::shared_ptr<const PodClass> ClassOf(const corev1::Pod& pod, Vocabulary& words) {
  corev1::Pod alike;
  alike.mutable_metadata()->set_namespace_(pod.metadata().namespace_());
  *alike.mutable_metadata()->mutable_labels() = pod.metadata().labels();
  if (pod.spec().affinity().has_pod_affinity()) {
    *alike.mutable_spec()->mutable_affinity()->mutable_pod_affinity() = pod.spec().affinity().pod_affinity();
  }
  if (pod.spec().affinity().has_pod_anti_affinity()) {
    *alike.mutable_spec()->mutable_affinity()->mutable_pod_anti_affinity() =
        pod.spec().affinity().pod_anti_affinity();
  }
  const std::string key = (k8s::IsTerminating(pod) ? '-' : '+') + api::EncodeRaw(alike);
  return words.classes.Get(key, pod, words.topology_keys);
}

}  // namespace keelson::scheduler
