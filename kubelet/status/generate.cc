#include "kubelet/status/generate.h"

#include "kubelet/status/conditions.h"
#include "kubelet/status/container_statuses.h"
#include "kubelet/status/phase.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

void FillAddresses(const StatusInput& input, corev1::PodStatus& out) {
  if (!input.node_ips.empty()) {
    out.set_host_ip(input.node_ips.front());
    out.clear_host_ips();
    for (const std::string& ip : input.node_ips) out.add_host_ips()->set_ip(ip);
  }
  std::vector<std::string> ips = PodIps(input.pod.spec(), input.runtime, input.node_ips);
  if (ips.empty()) return;  // a sandbox that is gone had the addresses that the status still shows
  out.set_pod_ip(ips.front());
  out.clear_pod_ips();
  for (const std::string& ip : ips) out.add_pod_ips()->set_ip(ip);
}

}  // namespace

corev1::PodStatus GenerateStatus(const StatusInput& input) {
  corev1::PodStatus out = input.pod.status();
  const int64_t generation = input.pod.metadata().generation();
  if (generation) out.set_observed_generation(generation);
  out.set_qos_class(std::string(k8s::QosClass(input.pod)));
  if (!out.has_start_time()) *out.mutable_start_time() = api::ToTime(input.now);
  FillAddresses(input, out);
  FillContainerStatuses(input, out);
  out.set_phase(PhaseOf(input, out));
  FillConditions(input, out);
  return out;
}

}  // namespace keelson::kubelet
