// Where a DaemonSet's pods belong, which of them have to go, and what its status says. Pure functions
// without I/O.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/replicaset/plan.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/k8s/pods/node_affinity.h"

namespace keelson::controllers {

using NodePointers = std::vector<std::shared_ptr<const corev1::Node>>;
using PodsByNode = std::map<std::string, PodPointers>;

inline constexpr char kTemplateGeneration[] = "pod-template-generation";  // a label of pods

// ---- placement ----

// Which nodes a set's pods belong on: spec.nodeName, node selector and affinity, taints. The pods tolerate
// what the controller adds (NewDaemonPod) beside what their template says.
class DaemonPlacement {
 public:
  explicit DaemonPlacement(const appsv1::DaemonSet& set);

  struct Fit {
    bool should_run = false;       // a pod is to be made
    bool should_continue = false;  // one that is there may stay: all taints against it are NoSchedule
  };
  Fit Of(const corev1::Node& node) const;

 private:
  corev1::PodSpec spec_;
  k8s::RequiredNodeAffinity affinity_;
};

// The pod for a node, bound to it by node affinity. `hash`: that of the revision.
corev1::Pod NewDaemonPod(const appsv1::DaemonSet& set, const std::string& node, const std::string& hash);
// The node that a pod is on, or bound to by NewDaemonPod's affinity; empty when it is neither.
std::string TargetNodeOf(const corev1::Pod& pod);
// By target node. Pods that have ended and are on their way out do not count any more.
PodsByNode GroupByNode(const PodPointers& pods);
// Made of the revision with `hash`, or of the template as counted by the set's deprecated annotation.
bool IsUpToDate(const appsv1::DaemonSet& set, const corev1::Pod& pod, const std::string& hash);

// ---- changes ----

struct DaemonChanges {
  std::vector<std::string> create;  // names of nodes
  PodPointers remove;
};
struct DaemonRepairs : DaemonChanges {
  PodPointers failed, succeeded;  // of those in `remove`
};

// One pod a node where it should run, none elsewhere; where surge is allowed, two until the new one is
// available. `spare` says of a failed pod that it stays for now.
DaemonRepairs PlanPods(const appsv1::DaemonSet& set, const NodePointers& nodes, const PodsByNode& pods,
                       const std::string& hash, WallTime now,
                       const std::function<bool(const corev1::Pod&)>& spare);
// A rolling update's next step.
DaemonChanges PlanRollout(const appsv1::DaemonSet& set, const NodePointers& nodes, PodsByNode pods,
                          const std::string& hash, WallTime now);

struct DaemonLimits {
  int32_t surge = 0, unavailable = 0;
};
// Of a rolling update over `desired` nodes, percentages rounded up; both zero would stand still, so then one
// pod may be unavailable.
DaemonLimits LimitsOf(const appsv1::DaemonSet& set, int32_t desired);

// ---- status ----

// `settled`: the set was processed, and not only looked at.
appsv1::DaemonSetStatus StatusOf(const appsv1::DaemonSet& set, const NodePointers& nodes,
                                 const PodsByNode& pods, const std::string& hash, bool settled, WallTime now);

}  // namespace keelson::controllers
