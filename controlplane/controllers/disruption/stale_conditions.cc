#include "controlplane/controllers/disruption/stale_conditions.h"

#include "controlplane/controllers/common/pod_status_patch.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::minutes kTimeout(2);

// When to reset the condition; nullopt: it is not set, or the disruption is in progress. A kubelet's own
// condition never expires.
std::optional<WallTime> StaleAt(const corev1::Pod& pod) {
  const corev1::PodCondition* target = k8s::FindCondition(pod.status(), k8s::kDisruptionTarget);
  if (!target || target->status() != "True" || target->reason() == "TerminationByKubelet") {
    return std::nullopt;
  }
  if (k8s::IsTerminating(pod) || k8s::IsTerminal(pod)) return std::nullopt;
  return api::FromTime(target->last_transition_time()) + kTimeout;
}

}  // namespace

StaleDisruptionController::StaleDisruptionController(client::RestClient api,
                                                     client::InformerFactory& informers,
                                                     client::EventRecorder&, Clock& clock)
    : Controller("stale_pod_disruption", clock), api_(std::move(api)), pods_(informers.Get<corev1::Pod>()) {
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (change.new_object && StaleAt(*change.new_object)) queue().Add(change.key);
  });
}

Result<Requeue> StaleDisruptionController::Reconcile(const std::string& key, std::stop_token stop) {
  auto pod = pods_.Get(key);
  const std::optional<WallTime> at = pod ? StaleAt(*pod) : std::nullopt;
  if (!at) return Requeue{};
  const WallTime now = clock().Now();
  if (*at > now) return Requeue{*at - now};
  Result<> marked = PatchPodStatus(api_.With(stop), *pod, {.disruption_target = "False"}, now);
  if (!marked && !marked.error().Is(Code::kNotFound)) return marked.error();
  return Requeue{};
}

}  // namespace keelson::controllers
