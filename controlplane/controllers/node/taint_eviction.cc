#include "controlplane/controllers/node/taint_eviction.h"

#include <algorithm>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/pod_status_patch.h"
#include "controlplane/controllers/node/node_plan.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::controllers {
namespace {

bool HasNoExecute(const corev1::Node& node) {
  return std::any_of(node.spec().taints().begin(), node.spec().taints().end(),
                     [](const corev1::Taint& taint) { return taint.effect() == k8s::kNoExecute; });
}

void CountDeletion(std::chrono::nanoseconds late) {
  static metrics::Value& total = TheMetrics().taint_eviction_pod_deletions_total.With();
  static metrics::Histogram& latency =
      TheMetrics().taint_eviction_pod_deletion_duration_seconds.HistogramWith();
  total.Increment();
  latency.Observe(std::chrono::duration<double>(late).count());
}

}  // namespace

TaintEvictionController::TaintEvictionController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder& events, Clock& clock)
    : Controller("noexec_taint_pod", clock, 2),
      api_(std::move(api)),
      events_(events),
      pods_(informers.Get<corev1::Pod>()),
      nodes_(informers.Get<corev1::Node>()) {
  pods_.AddIndex("node", [](const corev1::Pod& pod) { return std::vector{pod.spec().node_name()}; });
  nodes_.AddHandler([this](const auto& change) { OnNode(change); });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (!change.new_object) {
      MutexLock lock(mutex_);
      first_seen_.erase(change.old_object->metadata().uid());
      return;
    }
    auto node = nodes_.Get(change.new_object->spec().node_name());
    if (node && HasNoExecute(*node)) queue().Add(change.key);
  });
}

void TaintEvictionController::OnNode(const client::Change<corev1::Node>& change) {
  const bool before = change.old_object && HasNoExecute(*change.old_object);
  const bool now = change.new_object && HasNoExecute(*change.new_object);
  if (!before && !now) return;
  for (const auto& pod : pods_.ByIndex("node", change.key)) queue().Add(api::KeyOf(*pod));
}

std::optional<WallTime> TaintEvictionController::Schedule(const corev1::Pod& pod, const corev1::Node* node) {
  const WallTime now = clock().Now();
  MutexLock lock(mutex_);
  const auto before = first_seen_.find(pod.metadata().uid());
  const WallTime since = before == first_seen_.end() ? now : before->second;
  std::optional<WallTime> leave;
  if (node && HasNoExecute(*node)) {
    const std::optional<std::chrono::seconds> patience = Patience(pod, node->spec().taints());
    if (patience) leave = *patience == std::chrono::seconds(0) ? now : since + *patience;
  }
  if (leave) {
    first_seen_.emplace(pod.metadata().uid(), since);
  } else if (before != first_seen_.end()) {
    first_seen_.erase(before);
    events_.Record(pod, "Normal", "TaintManagerEviction", "Cancelling deletion of Pod " + api::KeyOf(pod));
  }
  return leave;
}

Result<Requeue> TaintEvictionController::Reconcile(const std::string& key, std::stop_token stop) {
  auto pod = pods_.Get(key);
  if (!pod || k8s::IsTerminating(*pod)) return Requeue{};
  const metav1::ObjectMeta& meta = pod->metadata();
  auto node = nodes_.Get(pod->spec().node_name());
  const std::optional<WallTime> leave = Schedule(*pod, node.get());
  if (!leave) return Requeue{};
  const WallTime now = clock().Now();
  if (*leave > now) return Requeue{*leave - now};

  const client::RestClient api = api_.With(stop);
  events_.Record(*pod, "Normal", "TaintManagerEviction", "Marking for deletion Pod " + key);
  Result<> marked = PatchPodStatus(api, *pod,
                                   {.reason = "DeletionByTaintManager",
                                    .message = "Taint manager: deleting due to NoExecute taint",
                                    .disruption_target = "True"},
                                   now);
  if (!marked && marked.error().Is(Code::kNotFound)) return Requeue{};
  if (!marked) return marked.error();
  Result<> deleted = api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.uid = meta.uid()});
  if (deleted) CountDeletion(clock().Now() - *leave);
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("evict");
  return Requeue{};
}

}  // namespace keelson::controllers
