// Whether a pod's wish for other resources can be granted, and what has to be done then (KEP-1287). Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kubelet/container/runtime_status.h"
#include "kubelet/resize/allocations.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

struct NodeRoom {
  k8s::ResourceList allocatable, used_by_others;
  bool static_cpus = false, static_memory = false;  // policies that know no resizing of Guaranteed pods
};

// The reason and message for the condition PodResizePending; nullopt: granted. `detail`: an Infeasible one's
// reason in metrics.
struct ResizeRefusal {
  std::string reason, message, detail;
};
std::optional<ResizeRefusal> RefuseResize(const corev1::Pod& wish, const corev1::Pod& granted,
                                          const NodeRoom& room);

struct ContainerResize {
  std::string container, id;  // both empty: the pod's cgroup
  corev1::ResourceRequirements from, to;
};

struct ResizePlan {
  std::vector<ContainerResize> update;  // in place
  std::set<std::string> restart;        // containers whose resizePolicy wants them to begin anew
  bool empty() const { return update.empty() && restart.empty(); }
};

using ActualResources =
    std::function<std::optional<corev1::ResourceRequirements>(const ContainerRecord& record)>;
// spec.resources as they are in force: in the pod's cgroup, and for a container whose limits they are where
// it has none of its own.
struct ActualPodResources {
  std::optional<corev1::ResourceRequirements> cgroup;
  ActualResources told;  // may be empty
};
// What concerns the pod's cgroup comes first.
ResizePlan PlanResize(const corev1::Pod& granted, const PodRuntimeStatus& status,
                      const ActualResources& actual, const ActualPodResources& of_pod = {});

// The pod with the larger of both amounts wherever a container is resized: what its cgroup has to allow
// meanwhile.
corev1::Pod LargerOfBoth(const corev1::Pod& granted, const std::vector<ContainerResize>& resizes);

// Conditions PodResizePending and PodResizeInProgress; those of `pod` keep their times while nothing changes.
void SetResizeConditions(const corev1::Pod& pod, const ResizeState& state, const metav1::Time& now,
                         corev1::PodStatus& status);

}  // namespace keelson::kubelet
