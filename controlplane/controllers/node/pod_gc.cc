#include "controlplane/controllers/node/pod_gc.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/k8s/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr std::chrono::seconds kPeriod{20};
constexpr std::chrono::seconds kQuarantine{40};  // a node may register late
constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";

bool IsOutOfService(const corev1::Node& node) {
  if (k8s::IsReady(node)) return false;
  return std::any_of(node.spec().taints().begin(), node.spec().taints().end(),
                     [](const corev1::Taint& taint) { return taint.key() == kOutOfService; });
}

}  // namespace

PodGcController::PodGcController(client::RestClient api, client::InformerFactory& informers,
                                 client::EventRecorder&, Clock& clock, int terminated_threshold)
    : Controller("pod-garbage-collector", clock),
      api_(std::move(api)),
      pods_(informers.Get<corev1::Pod>()),
      nodes_(informers.Get<corev1::Node>()),
      terminated_threshold_(terminated_threshold) {
  pods_.AddIndex("node", [](const corev1::Pod& pod) { return std::vector{pod.spec().node_name()}; });
  queue().Add("pods");
}

Result<bool> PodGcController::IsNodeGone(const client::RestClient& api, const std::string& node) {
  auto [it, first] = missing_since_.try_emplace(node, clock().SteadyNow());
  if (first || clock().SteadyNow() - it->second < kQuarantine) return false;
  Result<corev1::Node> live = api.Get<corev1::Node>("", node);
  if (live) return false;
  if (live.error().Is(Code::kNotFound)) return true;
  return live.error();
}

Result<> PodGcController::Remove(const client::RestClient& api, const corev1::Pod& pod, const char* why) {
  const metav1::ObjectMeta& meta = pod.metadata();
  log::Info("Removing a pod that no kubelet will remove", {{"pod", api::KeyOf(pod)}, {"why", why}});
  // Whoever waits for the pod to finish (a Job) must see that it did not do so by itself.
  if (!k8s::IsTerminal(pod)) {
    corev1::Pod failed = pod;
    failed.mutable_status()->set_phase("Failed");
    corev1::PodCondition condition;
    condition.set_type(std::string(k8s::kDisruptionTarget));
    condition.set_status("True");
    condition.set_reason("DeletionByPodGC");
    condition.set_message(std::string("PodGC: ") + why);
    k8s::SetCondition(*failed.mutable_status(), std::move(condition), clock().Now());
    Result<corev1::Pod> stored = api.UpdateStatus(failed);
    if (!stored && stored.error().Is(Code::kNotFound)) return {};
    if (!stored) return stored.error();
  }
  Result<> deleted =
      api.Delete<corev1::Pod>(meta.namespace_(), meta.name(), {.grace_period_seconds = 0, .uid = meta.uid()});
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error();
  return {};
}

Result<Requeue> PodGcController::Reconcile(const std::string&, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  std::optional<Error> failure;
  auto remove = [&](const corev1::Pod& pod, const char* why) {
    if (Result<> removed = Remove(api, pod, why); !removed) failure = removed.error();
  };
  std::map<std::string, int> gone;  // 1: gone, 2: out of service, 0: fine
  std::vector<std::shared_ptr<const corev1::Pod>> finished;
  std::set<std::string> missing;
  for (const auto& pod : pods_.List()) {
    if (stop.stop_requested()) return Requeue{};
    const std::string& node = pod->spec().node_name();
    if (node.empty()) {
      if (k8s::IsTerminating(*pod)) remove(*pod, "pod was deleted before it was scheduled");
      continue;
    }
    auto [it, first] = gone.try_emplace(node, 0);
    auto known = nodes_.Get(node);
    if (!known) missing.insert(node);
    if (first && known) it->second = IsOutOfService(*known) ? 2 : 0;
    if (first && !known) {
      ASSIGN_OR_RETURN(bool is_gone, IsNodeGone(api, node));
      it->second = is_gone ? 1 : 0;
    }
    if (it->second == 1) {
      remove(*pod, "node no longer exists");
    } else if (it->second == 2 && k8s::IsTerminating(*pod)) {
      remove(*pod, "node is out of service");
    } else if (k8s::IsTerminal(*pod) && !k8s::IsTerminating(*pod)) {
      finished.push_back(pod);
    }
  }
  std::erase_if(missing_since_, [&](const auto& entry) { return !missing.count(entry.first); });

  if (terminated_threshold_ > 0 && finished.size() > static_cast<size_t>(terminated_threshold_)) {
    std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) {
      return a->metadata().creation_timestamp().seconds() < b->metadata().creation_timestamp().seconds();
    });
    finished.resize(finished.size() - static_cast<size_t>(terminated_threshold_));
    for (const auto& pod : finished) remove(*pod, "too many finished pods");
  }
  if (failure) log::Warn("Some pods could not be removed, will be retried", {{"err", *failure}});
  return Requeue{kPeriod};
}

}  // namespace keelson::controllers
