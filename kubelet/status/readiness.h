// What the results of probes mean for a pod's status. Pure.
#pragma once

#include <string>

#include "kubelet/probe/results.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

// Whether a running container counts as started and as ready.
bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes);
bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes);

// Brings a status that was told before up to what probes have found since: `started` and `ready` of the
// containers that it shows as running, and what follows for the pod. False: nothing is new. A pod that has
// ended stays as it is.
bool UpdateReadiness(const corev1::PodSpec& spec, const ProbeResults& probes, WallTime now,
                     corev1::PodStatus& status);

}  // namespace keelson::kubelet
