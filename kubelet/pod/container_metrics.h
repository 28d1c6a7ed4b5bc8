// What is counted of pods and containers as they are taken and started: kubelet_admission_rejections_total,
// kubelet_containers_per_pod_count, kubelet_started_*, kubelet_terminated_containers_total,
// kubelet_image_volume_*.
#pragma once

#include <string>

#include "kubelet/container/runtime_status.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

void CountRejectedPod(const std::string& reason);
void CountAdmittedPod(const corev1::PodSpec& spec);
void CountContainerStart(const corev1::PodSpec& spec, const std::string& container);
// `code`: the reason that the container's status gives.
void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code);
// Those of `now` that have ended since `before`. `now` and `before`: two looks of this kubelet at the pod.
void CountContainerEnds(const corev1::PodSpec& spec, const PodRuntimeStatus& before,
                        const PodRuntimeStatus& now);

// Pods with user namespaces.
void CountUserNamespaces(bool started);
// Volumes that are images: asked for, and of a container that was made or could not be made.
void CountImageVolume();
void CountImageVolumesMounted(int volumes, bool mounted);

}  // namespace keelson::kubelet
