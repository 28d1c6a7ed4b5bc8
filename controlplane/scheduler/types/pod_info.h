// A pod as the scheduler keeps it: what filters and scores read, computed once from the object. Immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/scheduler/types/pod_class.h"
#include "controlplane/scheduler/types/pod_shape.h"
#include "controlplane/scheduler/types/resources.h"
#include "controlplane/scheduler/types/spread_spec.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::scheduler {

// The volumes that restrict where a pod can run.
struct PodVolumes {
  struct Claim {
    std::string name;
    bool ephemeral = false;  // made for this pod, from a template in its spec
  };
  std::vector<Claim> claims;
  std::vector<corev1::Volume> disks;  // named in the spec: GCE, AWS, iSCSI, RBD
};

struct PodInfo {
  std::string ns, name, uid, key;  // key: "ns/name"
  std::string node_name, nominated_node;
  std::string scheduler_name;
  std::shared_ptr<const PodShape> shape;
  std::shared_ptr<const PodClass> pod_class;
  std::shared_ptr<const SpreadSpec> spread;   // null: no constraints of its own
  std::shared_ptr<const PodVolumes> volumes;  // null: none
  int32_t priority = 0;
  std::vector<std::string> gates;  // names of its scheduling gates
  bool terminating = false;        // is being deleted
  bool evicted = false;            // preempted by a scheduler: condition DisruptionTarget
  Resources requests;              // of the shape, unless a resize is under way
  Resources non_zero_requests;
  std::string owner_kind, owner_name, owner_uid;  // its controller
  metav1::Time created, started;
  // The PodScheduled condition in the object.
  std::string condition_status, condition_reason, condition_message;
  metav1::Time condition_since;
  int64_t generation = 0;

  PodInfo(const corev1::Pod& pod, Vocabulary& words);
  bool gated() const { return !gates.empty(); }
};

using PodPtr = std::shared_ptr<const PodInfo>;

}  // namespace keelson::scheduler
