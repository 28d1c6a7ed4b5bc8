// Counts and times the calls to the runtime: kubelet_runtime_operations_*, kubelet_run_podsandbox_*,
// kubelet_started_pods_*.
#pragma once

#include <memory>

#include "kubelet/cri/runtime.h"

namespace keelson::kubelet {

// `real` has to outlive the results.
std::unique_ptr<cri::RuntimeService> InstrumentedRuntimeService(cri::RuntimeService& real);
std::unique_ptr<cri::ImageService> InstrumentedImageService(cri::ImageService& real);

}  // namespace keelson::kubelet
