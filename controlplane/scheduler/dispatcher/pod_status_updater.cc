#include "controlplane/scheduler/dispatcher/pod_status_updater.h"

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

corev1::ObjectReference ReferenceTo(const PodInfo& pod) {
  corev1::ObjectReference reference;
  reference.set_api_version("v1");
  reference.set_kind("Pod");
  reference.set_namespace_(pod.ns);
  reference.set_name(pod.name);
  reference.set_uid(pod.uid);
  return reference;
}

}  // namespace

void PodStatusUpdater::Scheduled(const PodInfo& pod, const std::string& node) {
  events_.Record(ReferenceTo(pod), "Normal", "Scheduled",
                 fmt::format("Successfully assigned {} to {}", pod.key, node));
}

void PodStatusUpdater::Preempted(const PodInfo& victim, const PodInfo& pod, const std::string& node) {
  events_.Record(ReferenceTo(victim), "Normal", "Preempted",
                 fmt::format("Preempted by pod {} on node {}", pod.uid, node));
}

void PodStatusUpdater::Unschedulable(const PodPtr& pod, std::string_view reason, const std::string& message,
                                     const std::optional<std::string>& nominated_node_name) {
  events_.Record(ReferenceTo(*pod), "Warning", "FailedScheduling", message);
  const bool same_condition = pod->condition_status == "False" && pod->condition_reason == reason &&
                              pod->condition_message == message;
  const bool nomination_changes = nominated_node_name && *nominated_node_name != pod->nominated_node;
  if (same_condition && !nomination_changes) return;
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kPodScheduled));
  condition.set_status("False");
  condition.set_reason(std::string(reason));
  condition.set_message(message);
  condition.set_observed_generation(pod->generation);
  *condition.mutable_last_transition_time() =
      pod->condition_status == "False" ? pod->condition_since : api::ToTime(clock_.Now());
  std::string status = R"("conditions":[)" + api::EncodeJson(condition) + "]";
  if (nomination_changes) {
    status += R"(,"nominatedNodeName":)" +
              (nominated_node_name->empty() ? "null" : "\"" + *nominated_node_name + "\"");
  }
  Patch(pod, std::move(status));
}

void PodStatusUpdater::ClearNominatedNodeName(const PodPtr& pod) {
  Patch(pod, R"("nominatedNodeName":null)");
}

void PodStatusUpdater::Patch(const PodPtr& pod, std::string status) {
  std::string body = R"({"metadata":{"uid":")" + pod->uid + R"("},"status":{)" + status + "}}";
  dispatcher_.Submit(pod->uid, [this, pod, body = std::move(body)] {
    const auto patched =
        api_.Patch<corev1::Pod>(pod->ns, pod->name, client::PatchType::kStrategicMerge, body, "status");
    if (patched || patched.error().Is(Code::kCancelled) || patched.error().Is(Code::kNotFound) ||
        patched.error().Is(Code::kConflict)) {
      return;
    }
    log::Warn("Cannot write the status of a pod", {{"pod", pod->key}, {"err", patched.error()}});
  });
}

}  // namespace keelson::scheduler
