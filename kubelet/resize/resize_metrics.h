// What is counted of in-place resizes: kubelet_container_requested_resizes_total, kubelet_pod_*resizes*.
#pragma once

#include <string>

#include "kubelet/resize/allocations.h"

namespace keelson::kubelet {

// A wish that is seen for the first time, against what the pod has been granted: by resource, by requests and
// limits, and by what is done to the amount.
void CountRequestedResize(const corev1::Pod& wish, const corev1::Pod& granted);
void CountInfeasibleResize(const std::string& reason_detail);
// A wish that had to wait is granted; `trigger`: what made the kubelet look again.
void CountDeferredResizeAccepted(const std::string& trigger);
void CountResizeDuration(bool success, double seconds);
// How many pods are in such a state: one more (by = 1), one less (by = -1).
void CountResizeState(const ResizeState& state, int by);

}  // namespace keelson::kubelet
