// Which phase a pod is in. Pure.
#pragma once

#include <string>

#include "kubelet/status/generate.h"

namespace keelson::kubelet {

// `status` tells of all containers. An end that was told stays.
std::string PhaseOf(const StatusInput& input, const corev1::PodStatus& status);

}  // namespace keelson::kubelet
