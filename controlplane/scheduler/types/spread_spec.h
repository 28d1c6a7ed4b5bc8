// topologySpreadConstraints of a pod, ready for counting.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/types/vocabulary.h"
#include "lib/api/selector.h"
#include "lib/api/types.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::scheduler {

struct SpreadConstraint {
  uint32_t key;   // topology key, see Vocabulary
  bool hostname;  // it is kubernetes.io/hostname: a domain is one node
  int32_t max_skew = 1, min_domains = 1;
  api::LabelSelector selector;  // with what matchLabelKeys say
  bool honor_affinity = true, honor_taints = false;
  bool self = false;  // the pod itself is one of those that are counted

  SpreadConstraint(const corev1::TopologySpreadConstraint& constraint, const api::LabelMap& labels,
                   NameIds& keys);
};

// Equal for pods whose counts are equal.
struct SpreadSpec {
  uint64_t id;
  std::string ns;
  k8s::RequiredNodeAffinity affinity;
  k8s::Tolerations tolerations;
  std::vector<SpreadConstraint> hard, soft;  // DoNotSchedule, ScheduleAnyway
  // Nodes without all of the keys do not count. Not so with the defaults of the system.
  bool needs_all_keys = true;

  SpreadSpec(uint64_t id, const corev1::Pod& pod, NameIds& keys);
  // What a pod that has none of its own gets by default.
  SpreadSpec(uint64_t id, std::string ns, const k8s::RequiredNodeAffinity& affinity,
             const k8s::Tolerations& tolerations, const api::LabelMap& labels,
             const std::vector<corev1::TopologySpreadConstraint>& constraints, bool needs_all_keys,
             NameIds& keys);

 private:
  void Add(const corev1::TopologySpreadConstraint& constraint, const api::LabelMap& labels, NameIds& keys);
};

// Null where there are no constraints.
std::shared_ptr<const SpreadSpec> SpreadOf(const corev1::Pod& pod, Vocabulary& words);

}  // namespace keelson::scheduler
