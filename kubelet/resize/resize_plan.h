// Whether a resize is feasible on the node, and what has to be done for it (KEP-1287). Pure.
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
  bool static_cpus = false, static_memory = false;  // static policies, which cannot resize Guaranteed pods
};

// Reason and message of the condition PodResizePending. `detail`: the reason of Infeasible in metrics.
struct ResizeRefusal {
  std::string reason, message, detail;
};
// Why the resize from `granted` to `wish` has to wait or is impossible; nullopt: it is not.
std::optional<ResizeRefusal> RefuseResize(const corev1::Pod& wish, const corev1::Pod& granted,
                                          const NodeRoom& room);

struct ContainerResize {
  std::string container, id;  // both empty: the pod's cgroup
  corev1::ResourceRequirements from, to;
};

struct ResizePlan {
  std::vector<ContainerResize> update;  // in place
  std::set<std::string> restart;        // containers whose resizePolicy is RestartContainer
  bool empty() const { return update.empty() && restart.empty(); }
};

using ActualResources =
    std::function<std::optional<corev1::ResourceRequirements>(const ContainerRecord& record)>;
// The pod's spec.resources in force: in its cgroup, and as limits of containers without their own.
struct ActualPodResources {
  std::optional<corev1::ResourceRequirements> cgroup;
  ActualResources told;  // may be empty
};
// The pod's cgroup comes first.
ResizePlan PlanResize(const corev1::Pod& granted, const PodRuntimeStatus& status,
                      const ActualResources& actual, const ActualPodResources& of_pod = {});

// The pod with the larger amount of each resized container: what its cgroup has to allow during the resize.
corev1::Pod LargerOfBoth(const corev1::Pod& granted, const std::vector<ContainerResize>& resizes);

// Conditions PodResizePending and PodResizeInProgress; conditions of `pod`
// that do not change keep their times.
void SetResizeConditions(const corev1::Pod& pod, const ResizeState& state, const metav1::Time& now,
                         corev1::PodStatus& status);

}  // namespace keelson::kubelet
