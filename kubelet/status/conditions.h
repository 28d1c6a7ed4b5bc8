// The pod conditions that the kubelet writes. Pure.
#pragma once

#include <string>
#include <string_view>

#include "kubelet/status/generate.h"

namespace keelson::kubelet {

// Sets a condition; its observedGeneration is the status's, and its transition time changes only with its value.
void SetOwnCondition(std::string_view type, bool value, const std::string& reason, const std::string& message,
                     WallTime now, corev1::PodStatus& status);

// Sets all of the kubelet's conditions, from the rest of the status.
void FillConditions(const StatusInput& input, corev1::PodStatus& status);

// Sets ContainersReady and Ready only: from the containers' readiness, the phase and, for readiness gates, the
// conditions of others.
void FillReadyConditions(const corev1::PodSpec& spec, WallTime now, corev1::PodStatus& status);

}  // namespace keelson::kubelet
