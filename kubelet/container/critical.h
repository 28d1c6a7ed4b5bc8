// Which pods are critical: evicted last, and admitted by preemption.
#pragma once

#include "lib/api/types.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

inline bool IsCriticalPod(const corev1::Pod& pod) {
  constexpr int32_t kSystemCriticalPriority = 2000000000;
  return k8s::IsStatic(pod) || k8s::IsMirror(pod) || k8s::Priority(pod.spec()) >= kSystemCriticalPriority;
}

}  // namespace keelson::kubelet
