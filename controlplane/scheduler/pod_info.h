// What the scheduler keeps of a pod: everything that filters and scores ask, worked out once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/resources.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/k8s/fit.h"
#include "lib/k8s/node_affinity.h"
#include "lib/k8s/tolerations.h"

namespace keelson::scheduler {

struct PreferredTerm {
  int32_t weight;
  k8s::NodeTerm term;
};

struct PodInfo {
  std::string ns, name, uid, key;  // key: "ns/name"
  std::string node_name;
  std::string scheduler_name;
  int32_t priority = 0;
  bool gated = false;        // has scheduling gates
  bool terminating = false;  // is being deleted
  Resources requests;        // pods is 1
  Resources scoring;         // cpu and memory, with defaults for containers that ask for none
  std::vector<k8s::HostPort> ports;
  k8s::Tolerations tolerations;
  k8s::RequiredNodeAffinity affinity;
  std::vector<PreferredTerm> preferred;
  // Pods with the same signature fit the same nodes with the same scores.
  std::string signature;
  // The PodScheduled condition as last seen: is a new one any news?
  std::string condition_status, condition_reason, condition_message;
  metav1::Time condition_since;

  PodInfo(const corev1::Pod& pod, ResourceNames& names);
};

using PodPtr = std::shared_ptr<const PodInfo>;

}  // namespace keelson::scheduler
