// A pod's class: its namespace, labels, and affinity terms. Pods of one ReplicaSet share a class, so that terms
// are matched once a class and not once a pod.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/types/vocabulary.h"
#include "lib/api/selector.h"
#include "lib/api/types.h"

namespace keelson::scheduler {

// Labels of namespaces, by name.
using NamespaceLabels = std::unordered_map<std::string, api::LabelMap>;

// A term of pod affinity or anti-affinity; the selector includes matchLabelKeys and mismatchLabelKeys.
struct AffinityTerm {
  uint32_t key;    // topology key, see Vocabulary
  int32_t weight;  // of a preferred term; negative: of anti-affinity
  api::LabelSelector selector;
  std::vector<std::string> namespaces;  // sorted
  bool by_namespace_labels = false;
  api::LabelSelector namespace_selector;

  AffinityTerm(const corev1::PodAffinityTerm& term, int32_t weight, const metav1::ObjectMeta& owner,
               NameIds& keys);
  // Whether the term selects pods of that class.
  bool Matches(const PodClass& pod, const NamespaceLabels& namespaces) const;
};

struct PodClass {
  uint64_t id;
  std::string ns;
  api::LabelMap labels;
  bool terminating;  // spreading does not count terminating pods
  std::vector<AffinityTerm> affinity, anti_affinity, preferred;

  PodClass(uint64_t id, const corev1::Pod& pod, NameIds& keys);
  bool HasTerms() const { return !affinity.empty() || !anti_affinity.empty() || !preferred.empty(); }
};

// The class of a pod; never null.
std::shared_ptr<const PodClass> ClassOf(const corev1::Pod& pod, Vocabulary& words);

}  // namespace keelson::scheduler
