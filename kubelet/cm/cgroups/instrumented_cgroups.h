// Times the calls to the pods' cgroups: kubelet_cgroup_manager_duration_seconds.
#pragma once

#include <memory>

#include "kubelet/cm/cgroups/pod_cgroups.h"

namespace keelson::kubelet {

// `real` has to outlive the result.
std::unique_ptr<PodCgroups> InstrumentedCgroups(PodCgroups& real);

}  // namespace keelson::kubelet
