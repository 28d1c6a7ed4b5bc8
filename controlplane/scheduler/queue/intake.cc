#include "controlplane/scheduler/queue/intake.h"

#include "controlplane/scheduler/framework/metrics.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

// Whether another try may end differently.
bool Differs(const PodInfo& a, const PodInfo& b) {
  return a.shape != b.shape || a.pod_class != b.pod_class || a.spread != b.spread || a.gates != b.gates;
}

ClusterEvent PodEvent(ClusterEvent::Kind kind, PodPtr pod, PodPtr old_pod = nullptr) {
  return {kind, nullptr, nullptr, std::move(pod), std::move(old_pod)};
}

}  // namespace

const char* Intake::Assigned(PodPtr pod) {
  const bool assumed = cache_.IsAssumed(pod->key);
  const PodPtr before = cache_.SetPod(pod);
  if (before && before->uid != pod->uid) leaves_(*before);
  if (pod->terminating) leaves_(*pod);
  if (!before || assumed) {
    queue_.Notify(PodEvent(ClusterEvent::Kind::kPodAdded, std::move(pod)));
  } else if (before->pod_class != pod->pod_class || !(before->requests == pod->requests)) {
    queue_.Notify(PodEvent(ClusterEvent::Kind::kPodChanged, std::move(pod), before));
  }
  return before ? "AssignedPodUpdate" : "AssignedPodAdd";
}

void Intake::Released(const std::string& key) {
  if (PodPtr removed = cache_.RemovePod(key)) {
    leaves_(*removed);
    queue_.Notify(PodEvent(ClusterEvent::Kind::kPodRemoved, std::move(removed)));
  }
}

void Intake::StopWaiting(const std::string& key) {
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return;
  const PodPtr pod = it->second;
  waiting_.erase(it);
  queue_.Remove(key);
  // What it was promised is free for others.
  if (cache_.NominatedNode(key).empty()) return;
  cache_.Nominate(pod, "");
  queue_.Notify(PodEvent(ClusterEvent::Kind::kPodRemoved, pod));
}

const char* Intake::Waiting(PodPtr pod) {
  PodPtr known;
  if (const auto it = waiting_.find(pod->key); it != waiting_.end()) known = it->second;
  if (known && known->uid != pod->uid) {  // a successor of the same name
    StopWaiting(pod->key);
    Released(pod->key);
    known = nullptr;
  }
  const bool spec_changed = known && Differs(*known, *pod);
  waiting_[pod->key] = pod;
  // Its binding is under way; the queue has nothing to do with it any more.
  const char* told = known ? "UnscheduledPodUpdate" : "UnscheduledPodAdd";
  if (cache_.IsAssumed(pod->key)) return told;
  // As a scheduler before this one has promised.
  if (!known && !pod->nominated_node.empty()) cache_.Nominate(pod, pod->nominated_node);
  queue_.Set(std::move(pod), spec_changed);
  return told;
}

void Intake::OnPod(const std::string& key, const corev1::Pod* pod) {
  const PointTime start = std::chrono::steady_clock::now();
  const char* event = TakePod(key, pod);
  TheMetrics().event_duration.HistogramWith({event}).Observe(SecondsSince(start));
}

const char* Intake::TakePod(const std::string& key, const corev1::Pod* pod) {
  const bool assigned = pod && !pod->spec().node_name().empty() && !k8s::IsTerminal(*pod);
  if (assigned) {
    if (waiting_.erase(key) > 0) queue_.Remove(key);
    return Assigned(std::make_shared<const PodInfo>(*pod, words_));
  }
  const bool ours =
      pod && !k8s::IsTerminal(*pod) && !k8s::IsTerminating(*pod) && ours_(pod->spec().scheduler_name());
  if (ours) return Waiting(std::make_shared<const PodInfo>(*pod, words_));
  const bool waited = waiting_.contains(key);
  StopWaiting(key);
  Released(key);
  return waited ? "UnscheduledPodDelete" : "AssignedPodDelete";
}

void Intake::OnNode(const std::string& name, const corev1::Node* node) {
  const PointTime start = std::chrono::steady_clock::now();
  const char* event = TakeNode(name, node);
  TheMetrics().event_duration.HistogramWith({event}).Observe(SecondsSince(start));
}

const char* Intake::TakeNode(const std::string& name, const corev1::Node* node) {
  if (!node) {
    nodes_.erase(name);
    cache_.RemoveNode(name);
    return "NodeDelete";
  }
  auto facts = std::make_shared<const NodeFacts>(*node, words_.resources);
  std::shared_ptr<const NodeFacts>& known = nodes_[name];
  // Most updates of a node are heartbeats.
  if (known && *known == *facts) return "NodeUpdate";
  const char* told = known ? "NodeUpdate" : "NodeAdd";
  ClusterEvent event{known ? ClusterEvent::Kind::kNodeChanged : ClusterEvent::Kind::kNodeAdded, facts, known,
                     nullptr, nullptr};
  known = facts;
  cache_.SetNode(std::move(facts));
  queue_.Notify(event);
  return told;
}

void Intake::OnNamespace(const std::string& name, const corev1::Namespace* ns) {
  cache_.SetNamespace(name, ns ? std::make_shared<const api::LabelMap>(ns->metadata().labels()) : nullptr);
  if (ns) queue_.Notify({ClusterEvent::Kind::kNamespace, nullptr, nullptr, nullptr, nullptr});
}

void Intake::OnStorage() {
  queue_.Notify({ClusterEvent::Kind::kStorage, nullptr, nullptr, nullptr, nullptr});
}

}  // namespace keelson::scheduler
