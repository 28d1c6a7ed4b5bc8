// The cgroups of pods with every call timed: kubelet_cgroup_manager_duration_seconds. What is wrapped has to
// live longer.
#pragma once

#include <memory>

#include "kubelet/cm/cgroups/pod_cgroups.h"

namespace keelson::kubelet {

std::unique_ptr<PodCgroups> MeasuredCgroups(PodCgroups& real);

}  // namespace keelson::kubelet
