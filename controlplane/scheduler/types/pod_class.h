// What other pods' placement asks of a pod: namespace, labels and its own wishes about other pods. Pods of
// one ReplicaSet are of one class, so that "which pods does this term mean" is asked once a class and not
// once a pod.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/types/vocabulary.h"
#include "lib/api/selector.h"
#include "lib/api/types.h"

namespace keelson::scheduler {

// Labels of namespaces by name; null where nothing is known of one.
using NamespaceLabels = std::unordered_map<std::string, api::LabelMap>;

// A term of pod affinity or anti-affinity. matchLabelKeys and mismatchLabelKeys have become part of the
// selector.
struct AffinityTerm {
  uint32_t key;    // topology key, see Vocabulary
  int32_t weight;  // of preferred ones; negative: rather not
  api::LabelSelector selector;
  std::vector<std::string> namespaces;  // sorted
  bool by_namespace_labels = false;
  api::LabelSelector namespace_selector;

  AffinityTerm(const corev1::PodAffinityTerm& term, int32_t weight, const metav1::ObjectMeta& owner,
               NameIds& keys);
  bool Matches(const PodClass& pod, const NamespaceLabels& namespaces) const;
};

struct PodClass {
  uint64_t id;
  std::string ns;
  api::LabelMap labels;
  bool terminating;  // spreading does not count what is about to go
  std::vector<AffinityTerm> affinity, anti_affinity, preferred;

  PodClass(uint64_t id, const corev1::Pod& pod, NameIds& keys);
  bool HasTerms() const { return !affinity.empty() || !anti_affinity.empty() || !preferred.empty(); }
};

std::shared_ptr<const PodClass> ClassOf(const corev1::Pod& pod, Vocabulary& words);

}  // namespace keelson::scheduler
