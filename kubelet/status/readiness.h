// Applies probe results to a pod's status. Pure.
#pragma once

#include <string>

#include "kubelet/probe/results.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

// Whether a running container counts as started and as ready.
bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes);
bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes);

// Updates a reported status with newer probe results: `started` and `ready` of running containers, and the pod's
// ready conditions. False: nothing has changed. Does not touch a pod with a final phase.
bool UpdateReadiness(const corev1::PodSpec& spec, const ProbeResults& probes, WallTime now,
                     corev1::PodStatus& status);

}  // namespace keelson::kubelet
