// Quality of service class of a pod, from its requests and limits of cpu and memory.
#pragma once

#include <string_view>

#include "lib/api/types.h"

namespace keelson::k8s {

inline constexpr std::string_view kGuaranteed = "Guaranteed";
inline constexpr std::string_view kBurstable = "Burstable";
inline constexpr std::string_view kBestEffort = "BestEffort";

// Computed from the spec; spec.resources takes precedence where it is set.
std::string_view ComputeQosClass(const corev1::Pod& pod);
// status.qosClass when set (it never changes), else computed.
std::string_view QosClass(const corev1::Pod& pod);

}  // namespace keelson::k8s
