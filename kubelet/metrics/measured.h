// The runtime and the cgroups of pods with every call counted and timed: kubelet_runtime_operations_*,
// kubelet_run_podsandbox_*, kubelet_started_pods_*, kubelet_cgroup_manager_duration_seconds. What is wrapped
// has to live longer.
#pragma once

#include <memory>

#include "kubelet/cm/pod_cgroups.h"
#include "kubelet/cri/runtime.h"

namespace keelson::kubelet {

std::unique_ptr<cri::RuntimeService> MeasuredRuntime(cri::RuntimeService& real);
std::unique_ptr<cri::ImageService> MeasuredImages(cri::ImageService& real);
std::unique_ptr<PodCgroups> MeasuredCgroups(PodCgroups& real);

}  // namespace keelson::kubelet
