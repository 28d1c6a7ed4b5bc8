// The topologySpreadConstraints of a pod, parsed.
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
  bool hostname;  // the key is kubernetes.io/hostname: each node is a domain
  int32_t max_skew = 1, min_domains = 1;
  api::LabelSelector selector;  // with matchLabelKeys
  bool honor_affinity = true, honor_taints = false;
  bool self = false;  // the selector matches the pod itself

  SpreadConstraint(const corev1::TopologySpreadConstraint& constraint, const api::LabelMap& labels,
                   NameIds& keys);
};

// Shared by all pods whose counts are equal.
struct SpreadSpec {
  uint64_t id;
  std::string ns;
  k8s::RequiredNodeAffinity affinity;
  k8s::Tolerations tolerations;
  std::vector<SpreadConstraint> hard, soft;  // DoNotSchedule, ScheduleAnyway
  // Whether only nodes with all keys count; false for the system's default constraints.
  bool needs_all_keys = true;

  SpreadSpec(uint64_t id, const corev1::Pod& pod, NameIds& keys);
  // From default constraints, for a pod without its own.
  SpreadSpec(uint64_t id, std::string ns, const k8s::RequiredNodeAffinity& affinity,
             const k8s::Tolerations& tolerations, const api::LabelMap& labels,
             const std::vector<corev1::TopologySpreadConstraint>& constraints, bool needs_all_keys,
             NameIds& keys);

 private:
  void Add(const corev1::TopologySpreadConstraint& constraint, const api::LabelMap& labels, NameIds& keys);
};

// The spec of a pod's own constraints; null: it has none.
std::shared_ptr<const SpreadSpec> SpreadOf(const corev1::Pod& pod, Vocabulary& words);

}  // namespace keelson::scheduler
