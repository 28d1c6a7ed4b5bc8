// What is counted of pods and containers as they are taken and started: kubelet_admission_rejections_total,
// kubelet_containers_per_pod_count, kubelet_started_*, kubelet_image_volume_*.
#pragma once

#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

void CountRejectedPod(const std::string& reason);
void CountAdmittedPod(const corev1::PodSpec& spec);
void CountContainerStart(const corev1::PodSpec& spec, const std::string& container);
// `code`: the reason that the container's status gives.
void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code);

// Pods with user namespaces.
void CountUserNamespaces(bool started);
// Volumes that are images: asked for, and of a container that was made or could not be made.
void CountImageVolume();
void CountImageVolumesMounted(int volumes, bool mounted);

}  // namespace keelson::kubelet
