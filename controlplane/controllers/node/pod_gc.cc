#include "controlplane/controllers/node/pod_gc.h"

#include <algorithm>
#include <tuple>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/pod_status_patch.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::seconds kPeriod{20};
constexpr std::chrono::seconds kQuarantine{40};  // the node may register late
constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";

// The pods that need a closer check.
constexpr char kIndex[] = "pod-gc", kNowhere[] = "without a node", kEnded[] = "ended";

constexpr PodGcController::Why kUnscheduled{"unscheduled", "pod was deleted before it was scheduled"},
    kOrphaned{"orphaned", "node no longer exists", true},
    kNodeOutOfService{"out-of-service", "node is out of service"},
    kFinished{"terminated", "too many finished pods"};

void Count(const Result<>& deleted, const std::string& ns, const char* reason) {
  static metrics::Family& pods = TheMetrics().pod_gc_collector_force_delete_pods_total;
  static metrics::Family& errors = TheMetrics().pod_gc_collector_force_delete_pod_errors_total;
  pods.With({ns, reason}).Increment();
  if (!deleted && !deleted.error().Is(Code::kNotFound)) errors.With({ns, reason}).Increment();
}

// Among finished pods evicted ones go first, then the oldest.
auto FinishedOrder(const corev1::Pod& pod) {
  const bool evicted = pod.status().phase() == "Failed" && pod.status().reason() == "Evicted";
  return std::tuple(!evicted, pod.metadata().creation_timestamp().seconds(),
                    std::string_view(pod.metadata().name()));
}

bool IsOutOfService(const corev1::Node& node) {
  if (k8s::IsReady(node)) return false;
  return std::any_of(node.spec().taints().begin(), node.spec().taints().end(),
                     [](const corev1::Taint& taint) { return taint.key() == kOutOfService; });
}

}  // namespace

PodGcController::PodGcController(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock, int terminated_threshold)
    : Controller("orphaned_pods_nodes", clock),
      api_(std::move(api)),
      pods_(informers.Get<corev1::Pod>()),
      nodes_(informers.Get<corev1::Node>()),
      terminated_threshold_(terminated_threshold) {
  pods_.AddIndex("node", [](const corev1::Pod& pod) { return std::vector{pod.spec().node_name()}; });
  pods_.AddIndex(kIndex, [](const corev1::Pod& pod) -> std::vector<std::string> {
    std::vector<std::string> keys;
    if (pod.spec().node_name().empty()) keys.push_back(kNowhere);
    if (k8s::IsTerminal(pod) && !k8s::IsTerminating(pod)) keys.push_back(kEnded);
    return keys;
  });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    MutexLock lock(mutex_);
    if (change.new_object) ++pods_on_[change.new_object->spec().node_name()];
    if (!change.old_object) return;
    auto it = pods_on_.find(change.old_object->spec().node_name());
    if (it != pods_on_.end() && --it->second == 0) pods_on_.erase(it);
  });
  queue().Add("pods");
}

std::vector<std::string> PodGcController::NodesOfPods() {
  MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [node, pods] : pods_on_) {
    if (!node.empty()) out.push_back(node);
  }
  return out;
}

Result<bool> PodGcController::IsNodeGone(const client::RestClient& api, const std::string& node) {
  auto [it, first] = missing_since_.try_emplace(node, clock().SteadyNow());
  if (first || clock().SteadyNow() - it->second < kQuarantine) return false;
  Result<corev1::Node> live = api.Get<corev1::Node>("", node);
  if (live) return false;
  if (live.error().Is(Code::kNotFound)) return true;
  return live.error();
}

Result<> PodGcController::Remove(const client::RestClient& api, const corev1::Pod& pod, const Why& why) {
  const metav1::ObjectMeta& meta = pod.metadata();
  log::Info("Removing a pod that no kubelet will remove", {{"pod", api::KeyOf(pod)}, {"why", why.text}});
  // A Job that waits for the pod must see that it did not finish by itself.
  if (!k8s::IsTerminal(pod)) {
    const std::string message = std::string("PodGC: ") + why.text;
    PodStatusPatch mark{.phase = "Failed"};
    if (why.disruption) {
      mark = {
          .phase = "Failed", .reason = "DeletionByPodGC", .message = message, .disruption_target = "True"};
    }
    Result<> marked = PatchPodStatus(api, pod, mark, clock().Now());
    if (!marked && marked.error().Is(Code::kNotFound)) return {};
    if (!marked) return marked;
  }
  Result<> deleted =
      api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.grace_period_seconds = 0, .uid = meta.uid()});
  Count(deleted, meta.namespace_(), why.label);
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error();
  return {};
}

Result<Requeue> PodGcController::Reconcile(const std::string&, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  std::optional<Error> failure;
  auto remove = [&](const corev1::Pod& pod, const Why& why) {
    if (Result<> removed = Remove(api, pod, why); !removed) failure = removed.error();
  };
  // First, because the pods below become finished when they are deleted.
  std::vector<std::shared_ptr<const corev1::Pod>> finished;
  if (terminated_threshold_ > 0) finished = pods_.ByIndex(kIndex, kEnded);
  if (terminated_threshold_ > 0 && finished.size() > static_cast<size_t>(terminated_threshold_)) {
    std::sort(finished.begin(), finished.end(),
              [](const auto& a, const auto& b) { return FinishedOrder(*a) < FinishedOrder(*b); });
    finished.resize(finished.size() - static_cast<size_t>(terminated_threshold_));
    for (const auto& pod : finished) remove(*pod, kFinished);
  }

  for (const auto& pod : pods_.ByIndex(kIndex, kNowhere)) {
    if (k8s::IsTerminating(*pod)) remove(*pod, kUnscheduled);
  }
  std::set<std::string> missing;
  for (const std::string& node : NodesOfPods()) {
    if (stop.stop_requested()) return Requeue{};
    auto known = nodes_.Get(node);
    if (known && !IsOutOfService(*known)) continue;
    if (!known) {
      missing.insert(node);
      KEELSON_ASSIGN_OR_RETURN(bool is_gone, IsNodeGone(api, node));
      if (!is_gone) continue;
    }
    for (const auto& pod : pods_.ByIndex("node", node)) {
      if (!known) {
        remove(*pod, kOrphaned);
      } else if (k8s::IsTerminating(*pod)) {
        remove(*pod, kNodeOutOfService);
      }
    }
  }
  std::erase_if(missing_since_, [&](const auto& entry) { return !missing.count(entry.first); });
  if (failure) log::Warn("Some pods could not be removed, will be retried", {{"err", *failure}});
  return Requeue{kPeriod};
}

}  // namespace keelson::controllers
