// Metrics of pods and containers as they are admitted and started: kubelet_admission_rejections_total,
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
// `code`: the waiting reason of the container's status.
void CountContainerFailure(const corev1::PodSpec& spec, const std::string& container,
                           const std::string& code);
// Counts the containers that have ended between two looks at the pod.
void CountContainerEnds(const corev1::PodSpec& spec, const PodRuntimeStatus& before,
                        const PodRuntimeStatus& now);

// A sandbox with a user namespace was started, or failed to.
void CountUserNamespaces(bool started);
// Image volumes: requested, and mounted or not when their container was created.
void CountImageVolume();
void CountImageVolumesMounted(int volumes, bool mounted);

}  // namespace keelson::kubelet
