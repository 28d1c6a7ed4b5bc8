#include "controlplane/controllers/node/node_lifecycle.h"

#include <algorithm>

#include <google/protobuf/util/message_differencer.h>

#include "controlplane/controllers/common/metrics.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::controllers {
namespace {

using google::protobuf::util::MessageDifferencer;

constexpr char kLeaseNamespace[] = "kube-node-lease";

bool SameTaints(const TaintList& a, const TaintList& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return MessageDifferencer::Equals(x, y);
         });
}

bool HasNoExecute(const TaintList& taints) {
  return std::any_of(taints.begin(), taints.end(), [](const corev1::Taint& taint) {
    return taint.effect() == k8s::kNoExecute && (taint.key() == kNotReady || taint.key() == kUnreachable);
  });
}

}  // namespace

NodeLifecycleController::NodeLifecycleController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder& events, Clock& clock,
                                                 const Options& options)
    : Controller("node_lifecycle_controller", clock),
      api_(std::move(api)),
      events_(events),
      options_(options),
      nodes_(informers.Get<corev1::Node>()),
      leases_(informers.Get<coordinationv1::Lease>({}, kLeaseNamespace)),
      pods_(informers.Get<corev1::Pod>()),
      zones_(options) {
  pods_.AddIndex("node", [](const corev1::Pod& pod) { return std::vector{pod.spec().node_name()}; });
  nodes_.AddHandler([this](const auto& change) { OnNode(change); });
  // A pod on an unresponsive node must not claim to be ready.
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (!change.new_object || !k8s::IsReady(*change.new_object)) return;
    auto node = nodes_.Get(change.new_object->spec().node_name());
    if (node && HealthOf(*node) == NodeHealth::kUnknown) queue().Add(api::KeyOf(*node));
  });
}

std::chrono::nanoseconds NodeLifecycleController::Silence(const corev1::Node& node) {
  const std::string& name = node.metadata().name();
  auto lease = leases_.Get(kLeaseNamespace, name);
  const corev1::NodeCondition* ready = k8s::FindCondition(node.status(), "Ready");
  const int64_t renewed =
      lease ? lease->spec().renew_time().seconds() * 1'000'000 + lease->spec().renew_time().nanos() / 1000
            : 0;
  // Our own writes are not a heartbeat.
  const bool by_kubelet =
      ready && ready->reason() != "NodeStatusUnknown" && ready->reason() != "NodeStatusNeverUpdated";
  const int64_t heartbeat = by_kubelet ? ready->last_heartbeat_time().seconds() : 0;
  const SteadyTime now = clock().SteadyNow();
  // A node that has never reported starts at its creation.
  std::chrono::nanoseconds age{0};
  if (!ready && node.metadata().has_creation_timestamp()) {
    age = std::max<std::chrono::nanoseconds>(
        age, clock().Now() - api::FromTime(node.metadata().creation_timestamp()));
  }

  MutexLock lock(mutex_);
  auto [it, first] = pulses_.try_emplace(name);
  Pulse& pulse = it->second;
  if (first || pulse.uid != node.metadata().uid()) {
    pulse = {node.metadata().uid(), renewed, heartbeat, now - age, false};
  } else if (renewed != pulse.renewed || (heartbeat != 0 && heartbeat != pulse.heartbeat)) {
    pulse.renewed = renewed;
    pulse.heartbeat = heartbeat;
    pulse.last = now;
  }
  const auto allowed = ready ? options_.node_monitor_grace_period : options_.node_startup_grace_period;
  return now - pulse.last > allowed ? now - pulse.last : std::chrono::nanoseconds(0);
}

bool NodeLifecycleController::MustMarkPods(const corev1::Node& node) {
  const NodeHealth health = HealthOf(node);
  MutexLock lock(mutex_);
  bool& marked = pulses_[node.metadata().name()].pods_marked;
  if (health == NodeHealth::kReady || !k8s::FindCondition(node.status(), "Ready")) {
    marked = false;
    return false;
  }
  return health == NodeHealth::kUnknown || !std::exchange(marked, true);
}

void NodeLifecycleController::NoteComingOrGoing(const client::Change<corev1::Node>& change) {
  auto uid = [](const auto& node) { return node ? node->metadata().uid() : std::string(); };
  if (uid(change.old_object) == uid(change.new_object)) return;
  if (change.old_object) {
    events_.Record(*change.old_object, "Normal", "RemovingNode",
                   "Removing Node " + change.key + " from Controller");
  }
  if (change.new_object) {
    events_.Record(*change.new_object, "Normal", "RegisteredNode",
                   "Registered Node " + change.key + " in Controller");
  }
}

void NodeLifecycleController::OnNode(const client::Change<corev1::Node>& change) {
  queue().Add(change.key);
  NoteComingOrGoing(change);
  const SteadyTime now = clock().SteadyNow();
  Zones::Mood mood;
  {
    MutexLock lock(mutex_);
    mood = zones_.Update(change.key, change.new_object.get(), now);
    // While all nodes were silent, the control plane was cut off: restart all grace periods.
    if (mood == Zones::Mood::kRecovered) {
      for (auto& [name, pulse] : pulses_) pulse.last = now;
    }
  }
  if (mood == Zones::Mood::kSame) return;
  const bool all = mood == Zones::Mood::kAllDisrupted;
  log::Info(all ? "No node is ready: nobody is evicted" : "Some node is ready again: evictions go on");
  for (const std::string& name : nodes_.Keys()) queue().Add(name);
}

Eviction NodeLifecycleController::EvictionOf(const corev1::Node& node, std::chrono::nanoseconds& again) {
  const std::string& name = node.metadata().name();
  const bool unhealthy = k8s::FindCondition(node.status(), "Ready") && HealthOf(node) != NodeHealth::kReady;
  MutexLock lock(mutex_);
  if (unhealthy && zones_.all_disrupted()) return Eviction::kCancel;
  if (!unhealthy || HasNoExecute(node.spec().taints())) {
    zones_.Withdraw(name);
    return Eviction::kKeep;
  }
  Zones::Turn turn = zones_.Ask(name, clock().SteadyNow());
  if (turn.wait) again = std::min(again, *turn.wait);
  if (!turn.next.empty()) queue().Add(turn.next);
  return turn.now ? Eviction::kStart : Eviction::kKeep;
}

Result<> NodeLifecycleController::MarkPodsNotReady(const client::RestClient& api, const std::string& node) {
  for (const auto& pod : pods_.ByIndex("node", node)) {
    const corev1::PodCondition* before = k8s::FindCondition(pod->status(), k8s::kPodReady);
    if (!before || before->status() != "True") continue;
    corev1::Pod changed = *pod;
    corev1::PodCondition condition = *before;
    condition.set_status("False");
    if (!k8s::SetCondition(*changed.mutable_status(), std::move(condition), clock().Now())) continue;
    Result<corev1::Pod> stored = api.UpdateStatus(changed);
    if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error().Wrap("mark pod not ready");
    events_.Record(*pod, "Warning", "NodeNotReady", "Node is not ready");
  }
  return {};
}

Result<> NodeLifecycleController::ApplyTaints(const client::RestClient& api, const corev1::Node& node,
                                              Eviction eviction) {
  TaintList wanted = PlanTaints(node, eviction, clock().Now());
  if (SameTaints(wanted, node.spec().taints())) return {};
  corev1::Node changed = node;
  *changed.mutable_spec()->mutable_taints() = std::move(wanted);
  KEELSON_RETURN_IF_ERROR(api.Update(changed));
  return {};
}

Result<Requeue> NodeLifecycleController::Reconcile(const std::string& key, std::stop_token stop) {
  static metrics::Histogram& duration =
      TheMetrics().node_collector_update_node_health_duration_seconds.HistogramWith();
  const SteadyTime begin = clock().SteadyNow();
  Result<Requeue> result = Look(key, stop);
  duration.Observe(std::chrono::duration<double>(clock().SteadyNow() - begin).count());
  return result;
}

Result<Requeue> NodeLifecycleController::Look(const std::string& key, std::stop_token stop) {
  auto stored = nodes_.Get(key);
  if (!stored) {
    MutexLock lock(mutex_);
    pulses_.erase(key);
    zones_.Withdraw(key);
    return Requeue{};
  }
  const client::RestClient api = api_.With(stop);
  corev1::Node node = *stored;
  if (Silence(node).count() > 0) {
    const NodeHealth before = HealthOf(node);
    if (MarkUnknown(*node.mutable_status(), api::FromTime(node.metadata().creation_timestamp()),
                    clock().Now())) {
      KEELSON_ASSIGN_OR_RETURN(node, api.UpdateStatus(node));
      if (before == NodeHealth::kReady) {
        events_.Record(node, "Normal", "NodeNotReady", "Node " + key + " status is now: NodeNotReady");
      }
    }
  }
  if (MustMarkPods(node)) KEELSON_RETURN_IF_ERROR(MarkPodsNotReady(api, key));
  std::chrono::nanoseconds again = options_.node_monitor_period;
  const Eviction eviction = EvictionOf(node, again);
  KEELSON_RETURN_IF_ERROR(ApplyTaints(api, node, eviction));
  return Requeue{again};
}

}  // namespace keelson::controllers
