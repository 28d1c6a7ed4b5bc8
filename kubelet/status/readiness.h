// What the results of probes mean for a pod's status. Pure.
#pragma once

#include <string>

#include "kubelet/probe/results.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// Whether a running container counts as started and as ready.
bool ContainerStarted(const corev1::Container& container, const std::string& id, const ProbeResults& probes);
bool ContainerReady(const corev1::Container& container, const std::string& id, const ProbeResults& probes);

}  // namespace keelson::kubelet
