#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "tests/fake_kubelet/fake_kubelets.h"

namespace keelson::fake_kubelet {
namespace {

void Condition(corev1::PodStatus& status, std::string_view type, bool holds, WallTime now,
               const char* reason = "") {
  corev1::PodCondition condition;
  condition.set_type(std::string(type));
  condition.set_status(holds ? "True" : "False");
  if (*reason) condition.set_reason(reason);
  k8s::SetCondition(status, std::move(condition), now);
}

corev1::ContainerStatus* Add(google::protobuf::RepeatedPtrField<corev1::ContainerStatus>& list,
                             const corev1::Pod& pod, const corev1::Container& container) {
  corev1::ContainerStatus* status = list.Add();
  status->set_name(container.name());
  status->set_image(container.image());
  status->set_image_id("fake://" + container.image());
  status->set_container_id("fake://" + pod.metadata().uid() + "/" + container.name());
  return status;
}

void SetEnded(corev1::ContainerStatus& status, WallTime from, WallTime to) {
  auto& ended = *status.mutable_state()->mutable_terminated();
  ended.set_exit_code(0);
  ended.set_reason("Completed");
  *ended.mutable_started_at() = api::ToTime(from);
  *ended.mutable_finished_at() = api::ToTime(to);
  ended.set_container_id(status.container_id());
}

}  // namespace

corev1::PodStatus RunningStatus(const corev1::Pod& pod, const std::string& address, WallTime now) {
  corev1::PodStatus status = pod.status();
  status.set_phase("Running");
  status.set_observed_generation(pod.metadata().generation());
  status.clear_container_statuses();
  status.clear_init_container_statuses();
  if (!status.has_start_time()) *status.mutable_start_time() = api::ToTime(now);
  status.set_host_ip("192.0.2.1");
  status.clear_host_ips();
  status.add_host_ips()->set_ip("192.0.2.1");
  status.set_pod_ip(address);
  status.clear_pod_ips();
  status.add_pod_ips()->set_ip(address);
  for (std::string_view type :
       {k8s::kPodReadyToStartContainers, k8s::kPodInitialized, k8s::kPodReady, k8s::kContainersReady}) {
    Condition(status, type, true, now);
  }
  auto set_running = [&](corev1::ContainerStatus& one) {
    one.set_ready(true);
    one.set_started(true);
    *one.mutable_state()->mutable_running()->mutable_started_at() = api::ToTime(now);
  };
  for (const corev1::Container& container : pod.spec().init_containers()) {
    corev1::ContainerStatus& one = *Add(*status.mutable_init_container_statuses(), pod, container);
    if (container.restart_policy() == "Always") {
      set_running(one);
    } else {
      one.set_ready(true);
      SetEnded(one, now, now);
    }
  }
  for (const corev1::Container& container : pod.spec().containers()) {
    set_running(*Add(*status.mutable_container_statuses(), pod, container));
  }
  return status;
}

corev1::PodStatus SucceededStatus(const corev1::Pod& pod, WallTime now) {
  corev1::PodStatus status = pod.status();
  status.set_phase("Succeeded");
  Condition(status, k8s::kPodReady, false, now, "PodCompleted");
  Condition(status, k8s::kContainersReady, false, now, "PodCompleted");
  Condition(status, k8s::kPodInitialized, true, now, "PodCompleted");
  for (corev1::ContainerStatus& one : *status.mutable_container_statuses()) {
    const WallTime from = api::FromTime(one.state().running().started_at());
    one.clear_state();
    one.set_ready(false);
    one.set_started(false);
    SetEnded(one, from, now);
  }
  return status;
}

}  // namespace keelson::fake_kubelet
