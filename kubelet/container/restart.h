// Whether a container may run again.
#pragma once

#include <cstdint>
#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

// The container's own policy, else the pod's.
const std::string& RestartPolicy(const corev1::PodSpec& spec, const corev1::Container& container);
// The first of the container's rules that knows the exit code; null when none does.
const corev1::ContainerRestartRule* RestartRule(const corev1::Container& container, int32_t exit_code);
// After an exit with this code, alone or together with all other containers of the pod.
bool MayRestart(const corev1::PodSpec& spec, const corev1::Container& container, int32_t exit_code);

}  // namespace keelson::kubelet
