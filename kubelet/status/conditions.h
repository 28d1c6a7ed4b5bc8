// The conditions that the kubelet writes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kubelet/status/generate.h"

namespace keelson::kubelet {

// Of the generation that the status tells of.
void SetOwnCondition(std::string_view type, bool value, const std::string& reason, const std::string& message,
                     WallTime now, corev1::PodStatus& status);

// All of them, from what the status says otherwise.
void FillConditions(const StatusInput& input, corev1::PodStatus& status);

// ContainersReady and Ready alone: from the containers' readiness, the phase and, for readiness gates,
// others' conditions.
void FillReadyConditions(const corev1::PodSpec& spec, WallTime now, corev1::PodStatus& status);

}  // namespace keelson::kubelet
