// Metrics of in-place resizes: kubelet_container_requested_resizes_total, kubelet_pod_*resizes*.
#pragma once

#include <string>

#include "kubelet/resize/allocations.h"

namespace keelson::kubelet {

// A resize is seen for the first time: counted by resource, requests or limits, and increase or decrease.
void CountRequestedResize(const corev1::Pod& wish, const corev1::Pod& granted);
void CountInfeasibleResize(const std::string& reason_detail);
// A deferred resize is accepted. `trigger`: why the kubelet has retried it.
void CountDeferredResizeAccepted(const std::string& trigger);
void CountResizeDuration(bool success, double seconds);
// One pod more (by = 1) or less (by = -1) is in this state.
void CountResizeState(const ResizeState& state, int by);

}  // namespace keelson::kubelet
