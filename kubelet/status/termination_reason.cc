#include "kubelet/status/termination_reason.h"

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

void ApplyTerminationReason(const TerminationReason& reason, WallTime now, corev1::PodStatus& status) {
  status.set_phase("Failed");
  status.set_reason(reason.reason);
  status.set_message(reason.message);
  if (!reason.disruption_message.empty()) {
    SetOwnCondition(k8s::kDisruptionTarget, true, "TerminationByKubelet", reason.disruption_message, now,
                    status);
  }
}

}  // namespace keelson::kubelet
