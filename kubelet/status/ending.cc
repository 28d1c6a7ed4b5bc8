#include "kubelet/status/ending.h"

#include "kubelet/status/conditions.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

corev1::PodStatus RejectedStatus(const corev1::Pod& pod, const std::string& reason,
                                 const std::string& message, WallTime now) {
  corev1::PodStatus out = pod.status();
  out.set_phase("Failed");
  out.set_reason(reason);
  out.set_message("Pod was rejected: " + message);
  out.set_qos_class(std::string(k8s::QosClass(pod)));
  if (!out.has_start_time()) *out.mutable_start_time() = api::ToTime(now);
  if (pod.metadata().generation()) out.set_observed_generation(pod.metadata().generation());
  return out;
}

void ApplyEnding(const PodEnding& ending, WallTime now, corev1::PodStatus& status) {
  status.set_phase("Failed");
  status.set_reason(ending.reason);
  status.set_message(ending.message);
  if (!ending.disruption.empty())
    SetOwnCondition(k8s::kDisruptionTarget, true, "TerminationByKubelet", ending.disruption, now, status);
}

}  // namespace keelson::kubelet
