#include "controlplane/controllers/common/pod_status_patch.h"

#include <fmt/format.h>

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

// The condition as JSON; empty when the pod has it already.
std::string ConditionOf(const corev1::Pod& pod, const PodStatusPatch& mark, WallTime now) {
  corev1::PodCondition condition;
  condition.set_type(std::string(k8s::kDisruptionTarget));
  condition.set_status(std::string(mark.disruption_target));
  if (!mark.reason.empty()) condition.set_reason(std::string(mark.reason));
  if (!mark.message.empty()) condition.set_message(std::string(mark.message));
  condition.set_observed_generation(pod.metadata().generation());
  corev1::PodStatus status = pod.status();
  if (!k8s::SetCondition(status, std::move(condition), now)) return "";
  const corev1::PodCondition& stored = *k8s::FindCondition(status, k8s::kDisruptionTarget);
  return fmt::format(
      R"({{"type":{},"status":{},"reason":{},"message":{},"lastTransitionTime":{},"lastProbeTime":null,"observedGeneration":{}}})",
      JsonQuoted(stored.type()), JsonQuoted(stored.status()), JsonQuoted(stored.reason()),
      JsonQuoted(stored.message()), JsonQuoted(api::FormatTime(stored.last_transition_time())),
      stored.observed_generation());
}

}  // namespace

Result<> PatchPodStatus(const client::RestClient& api, const corev1::Pod& pod, const PodStatusPatch& mark,
                        WallTime now) {
  std::string status;
  if (!mark.phase.empty() && mark.phase != pod.status().phase()) {
    status = fmt::format(R"("phase":{})", JsonQuoted(mark.phase));
  }
  if (!mark.disruption_target.empty()) {
    const std::string condition = ConditionOf(pod, mark, now);
    if (!condition.empty()) {
      status += fmt::format(R"({}"conditions":[{}])", status.empty() ? "" : ",", condition);
    }
  }
  if (status.empty()) return {};
  const metav1::ObjectMeta& meta = pod.metadata();
  Result<corev1::Pod> stored = api.Patch<corev1::Pod>(
      meta.namespace_(), meta.name(), client::PatchType::kStrategicMerge,
      fmt::format(R"({{"metadata":{{"uid":{}}},"status":{{{}}}}})", JsonQuoted(meta.uid()), status),
      "status");
  if (!stored && stored.error().Is(Code::kConflict)) return Error(Code::kNotFound, stored.error().message());
  if (!stored) return stored.error().Wrap("update pod status");
  return {};
}

}  // namespace keelson::controllers
