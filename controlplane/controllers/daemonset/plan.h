// Which nodes run a DaemonSet's pods, which pods to create and delete, and the status. Pure functions.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/common/active_pods.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/k8s/pods/node_affinity.h"

namespace keelson::controllers {

using NodePointers = std::vector<std::shared_ptr<const corev1::Node>>;
using PodsByNode = std::map<std::string, PodPointers>;

inline constexpr char kTemplateGeneration[] = "pod-template-generation";  // a label of pods

// ---- placement ----

// Tests nodes against spec.nodeName, node selector, node affinity and taints. Tolerations are those of the
// template plus those the controller adds (NewDaemonPod).
class DaemonPlacement {
 public:
  explicit DaemonPlacement(const appsv1::DaemonSet& set);

  struct Fit {
    bool should_run = false;       // the node needs a pod
    bool should_continue = false;  // an existing pod may stay: only NoSchedule taints exclude it
  };
  Fit Of(const corev1::Node& node) const;

 private:
  corev1::PodSpec spec_;
  k8s::RequiredNodeAffinity affinity_;
};

// Returns the pod for a node, bound to it by node affinity. `hash`: the revision's hash.
corev1::Pod NewDaemonPod(const appsv1::DaemonSet& set, const std::string& node, const std::string& hash);
// Returns the node that a pod runs on, or the node in the affinity that NewDaemonPod sets; empty when neither
// is set.
std::string TargetNodeOf(const corev1::Pod& pod);
// Groups pods by target node. Skips terminating pods that have ended.
PodsByNode GroupByNode(const PodPointers& pods);
// True when the pod was created from the revision with `hash`, or has the template generation of the
// deprecated annotation.
bool IsUpToDate(const appsv1::DaemonSet& set, const corev1::Pod& pod, const std::string& hash);

// ---- changes ----

struct DaemonChanges {
  std::vector<std::string> create;  // names of nodes
  PodPointers remove;
};
struct DaemonRepairs : DaemonChanges {
  PodPointers failed, succeeded;  // the failed and the succeeded ones in `remove`
};

// One pod on each node that should run one, none elsewhere. With maxSurge there may be two until the new pod
// is available. `spare` returns true for a failed pod that must stay for now (backoff).
DaemonRepairs PlanPods(const appsv1::DaemonSet& set, const NodePointers& nodes, const PodsByNode& pods,
                       const std::string& hash, WallTime now,
                       const std::function<bool(const corev1::Pod&)>& spare);
// The next step of a rolling update.
DaemonChanges PlanRollout(const appsv1::DaemonSet& set, const NodePointers& nodes, PodsByNode pods,
                          const std::string& hash, WallTime now);

struct DaemonLimits {
  int32_t surge = 0, unavailable = 0;
};
// maxSurge and maxUnavailable for `desired` nodes, percentages rounded up. When both are zero, unavailable is
// 1, so that the rollout can proceed.
DaemonLimits LimitsOf(const appsv1::DaemonSet& set, int32_t desired);

// ---- status ----

// `settled`: the sync completed; else observedGeneration stays as it is.
appsv1::DaemonSetStatus StatusOf(const appsv1::DaemonSet& set, const NodePointers& nodes,
                                 const PodsByNode& pods, const std::string& hash, bool settled, WallTime now);

}  // namespace keelson::controllers
