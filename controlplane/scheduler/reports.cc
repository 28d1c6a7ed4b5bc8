#include "controlplane/scheduler/reports.h"

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

void Reports::Scheduled(const PodInfo& pod, const std::string& node) {
  events_.Record(ReferenceTo(pod), "Normal", "Scheduled",
                 fmt::format("Successfully assigned {} to {}", pod.key, node));
}

void Reports::Preempted(const PodInfo& victim, const PodInfo& pod, const std::string& node) {
  events_.Record(ReferenceTo(victim), "Normal", "Preempted",
                 fmt::format("Preempted by pod {} on node {}", pod.uid, node));
}

void Reports::Unschedulable(const PodPtr& pod, std::string_view reason, const std::string& message,
                            const std::optional<std::string>& nominated) {
  events_.Record(ReferenceTo(*pod), "Warning", "FailedScheduling", message);
  const bool known = pod->condition_status == "False" && pod->condition_reason == reason &&
                     pod->condition_message == message;
  const bool moves = nominated && *nominated != pod->nominated_node;
  if (known && !moves) return;
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kPodScheduled));
  condition.set_status("False");
  condition.set_reason(std::string(reason));
  condition.set_message(message);
  condition.set_observed_generation(pod->generation);
  *condition.mutable_last_transition_time() =
      pod->condition_status == "False" ? pod->condition_since : api::ToTime(clock_.Now());
  std::string status = R"("conditions":[)" + api::EncodeJson(condition) + "]";
  if (moves) {
    status += R"(,"nominatedNodeName":)" + (nominated->empty() ? "null" : "\"" + *nominated + "\"");
  }
  Patch(pod, std::move(status));
}

void Reports::EndNomination(const PodPtr& pod) { Patch(pod, R"("nominatedNodeName":null)"); }

void Reports::Patch(const PodPtr& pod, std::string status) {
  std::string body = R"({"metadata":{"uid":")" + pod->uid + R"("},"status":{)" + status + "}}";
  binders_.Submit(pod->uid, [this, pod, body = std::move(body)] {
    const auto patched =
        api_.Patch<corev1::Pod>(pod->ns, pod->name, client::PatchType::kStrategicMerge, body, "status");
    if (patched || patched.error().Is(Code::kCancelled) || patched.error().Is(Code::kNotFound) ||
        patched.error().Is(Code::kConflict)) {
      return;
    }
    log::Warn("Cannot write the status of a pod", {{"pod", pod->key}, {"error", patched.error()}});
  });
}

}  // namespace keelson::scheduler
