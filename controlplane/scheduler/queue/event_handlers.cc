#include "controlplane/scheduler/queue/event_handlers.h"

#include "controlplane/scheduler/framework/metrics.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::scheduler {

namespace {

// Whether another attempt may have another result.
bool Differs(const PodInfo& a, const PodInfo& b) {
  return a.shape != b.shape || a.pod_class != b.pod_class || a.spread != b.spread || a.gates != b.gates;
}

ClusterEvent PodEvent(ClusterEvent::Kind kind, PodPtr pod, PodPtr old_pod = nullptr) {
  return {kind, nullptr, nullptr, std::move(pod), std::move(old_pod)};
}

}  // namespace

const char* EventHandlers::AddPodToCache(PodPtr pod) {
  const bool assumed = cache_.IsAssumedPod(pod->key);
  const PodPtr before = cache_.SetPod(pod);
  if (before && before->uid != pod->uid) on_pod_leaving_(*before);
  if (pod->terminating) on_pod_leaving_(*pod);
  if (!before || assumed) {
    queue_.MoveAllToActiveOrBackoffQueue(PodEvent(ClusterEvent::Kind::kAssignedPodAdd, std::move(pod)));
  } else if (before->pod_class != pod->pod_class || !(before->requests == pod->requests)) {
    queue_.MoveAllToActiveOrBackoffQueue(
        PodEvent(ClusterEvent::Kind::kAssignedPodUpdate, std::move(pod), before));
  }
  return before ? "AssignedPodUpdate" : "AssignedPodAdd";
}

void EventHandlers::DeletePodFromCache(const std::string& key) {
  if (PodPtr removed = cache_.RemovePod(key)) {
    on_pod_leaving_(*removed);
    queue_.MoveAllToActiveOrBackoffQueue(
        PodEvent(ClusterEvent::Kind::kAssignedPodDelete, std::move(removed)));
  }
}

void EventHandlers::DeletePodFromSchedulingQueue(const std::string& key) {
  const auto it = unscheduled_pods_.find(key);
  if (it == unscheduled_pods_.end()) return;
  const PodPtr pod = it->second;
  unscheduled_pods_.erase(it);
  queue_.Delete(key);
  // The room that it was nominated for is free for others.
  if (cache_.NominatedNode(key).empty()) return;
  cache_.Nominate(pod, "");
  queue_.MoveAllToActiveOrBackoffQueue(PodEvent(ClusterEvent::Kind::kAssignedPodDelete, pod));
}

const char* EventHandlers::AddPodToSchedulingQueue(PodPtr pod) {
  PodPtr known;
  if (const auto it = unscheduled_pods_.find(pod->key); it != unscheduled_pods_.end()) known = it->second;
  if (known && known->uid != pod->uid) {  // another pod of the same name
    DeletePodFromSchedulingQueue(pod->key);
    DeletePodFromCache(pod->key);
    known = nullptr;
  }
  const bool spec_changed = known && Differs(*known, *pod);
  unscheduled_pods_[pod->key] = pod;
  const char* event = known ? "UnscheduledPodUpdate" : "UnscheduledPodAdd";
  if (cache_.IsAssumedPod(pod->key)) return event;  // in its binding cycle, and out of the queue
  // An earlier scheduler has nominated it.
  if (!known && !pod->nominated_node.empty()) cache_.Nominate(pod, pod->nominated_node);
  queue_.AddOrUpdate(std::move(pod), spec_changed);
  return event;
}

void EventHandlers::OnPod(const std::string& key, const corev1::Pod* pod) {
  const PointTime start = std::chrono::steady_clock::now();
  const char* event = HandlePod(key, pod);
  TheMetrics().event_duration.HistogramWith({event}).Observe(SecondsSince(start));
}

const char* EventHandlers::HandlePod(const std::string& key, const corev1::Pod* pod) {
  const bool assigned = pod && !pod->spec().node_name().empty() && !k8s::IsTerminal(*pod);
  if (assigned) {
    if (unscheduled_pods_.erase(key) > 0) queue_.Delete(key);
    return AddPodToCache(std::make_shared<const PodInfo>(*pod, words_));
  }
  const bool responsible = pod && !k8s::IsTerminal(*pod) && !k8s::IsTerminating(*pod) &&
                           responsible_for_(pod->spec().scheduler_name());
  if (responsible) return AddPodToSchedulingQueue(std::make_shared<const PodInfo>(*pod, words_));
  const bool was_unscheduled = unscheduled_pods_.contains(key);
  DeletePodFromSchedulingQueue(key);
  DeletePodFromCache(key);
  return was_unscheduled ? "UnscheduledPodDelete" : "AssignedPodDelete";
}

void EventHandlers::OnNode(const std::string& name, const corev1::Node* node) {
  const PointTime start = std::chrono::steady_clock::now();
  const char* event = HandleNode(name, node);
  TheMetrics().event_duration.HistogramWith({event}).Observe(SecondsSince(start));
}

const char* EventHandlers::HandleNode(const std::string& name, const corev1::Node* node) {
  if (!node) {
    nodes_.erase(name);
    cache_.RemoveNode(name);
    return "NodeDelete";
  }
  auto facts = std::make_shared<const NodeFacts>(*node, words_.resources);
  std::shared_ptr<const NodeFacts>& known = nodes_[name];
  // Most updates of a node are heartbeats.
  if (known && *known == *facts) return "NodeUpdate";
  const char* event = known ? "NodeUpdate" : "NodeAdd";
  ClusterEvent cluster_event{known ? ClusterEvent::Kind::kNodeUpdate : ClusterEvent::Kind::kNodeAdd, facts,
                             known, nullptr, nullptr};
  known = facts;
  cache_.SetNode(std::move(facts));
  queue_.MoveAllToActiveOrBackoffQueue(cluster_event);
  return event;
}

void EventHandlers::OnNamespace(const std::string& name, const corev1::Namespace* ns) {
  cache_.SetNamespace(name, ns ? std::make_shared<const api::LabelMap>(ns->metadata().labels()) : nullptr);
  if (ns) {
    queue_.MoveAllToActiveOrBackoffQueue(
        {ClusterEvent::Kind::kNamespaceUpdate, nullptr, nullptr, nullptr, nullptr});
  }
}

void EventHandlers::OnStorage() {
  queue_.MoveAllToActiveOrBackoffQueue(
      {ClusterEvent::Kind::kStorageUpdate, nullptr, nullptr, nullptr, nullptr});
}

}  // namespace keelson::scheduler
