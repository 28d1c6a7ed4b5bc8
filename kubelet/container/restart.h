// Whether a container may run again.
#pragma once

#include <cstdint>
#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

// The container's own policy, else the pod's.
const std::string& RestartPolicy(const corev1::PodSpec& spec, const corev1::Container& container);
// The first restart rule of the container that matches the exit code; null: none.
const corev1::ContainerRestartRule* RestartRule(const corev1::Container& container, int32_t exit_code);
// Whether an exit with this code restarts the container, alone or with all containers of the pod.
bool MayRestart(const corev1::PodSpec& spec, const corev1::Container& container, int32_t exit_code);

}  // namespace keelson::kubelet
