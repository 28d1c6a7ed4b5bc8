// Container statuses, in the spec's order. Pure.
#pragma once

#include "kubelet/status/generate.h"

namespace keelson::kubelet {

void FillContainerStatuses(const StatusInput& input, corev1::PodStatus& out);

}  // namespace keelson::kubelet
