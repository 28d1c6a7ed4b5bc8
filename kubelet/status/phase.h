// The phase of a pod. Pure.
#pragma once

#include <string>

#include "kubelet/status/generate.h"

namespace keelson::kubelet {

// `status`: with all container statuses. A final phase that was reported stays.
std::string PhaseOf(const StatusInput& input, const corev1::PodStatus& status);

}  // namespace keelson::kubelet
