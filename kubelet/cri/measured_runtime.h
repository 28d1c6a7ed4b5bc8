// The runtime with every call counted and timed: kubelet_runtime_operations_*, kubelet_run_podsandbox_*,
// kubelet_started_pods_*. What is wrapped has to live longer.
#pragma once

#include <memory>

#include "kubelet/cri/runtime.h"

namespace keelson::kubelet {

std::unique_ptr<cri::RuntimeService> MeasuredRuntime(cri::RuntimeService& real);
std::unique_ptr<cri::ImageService> MeasuredImages(cri::ImageService& real);

}  // namespace keelson::kubelet
