#include "controlplane/scheduler/intake.h"

#include <algorithm>

#include "lib/k8s/pod_util.h"

namespace keelson::scheduler {

namespace {

bool SameTaints(const k8s::Taints& a, const k8s::Taints& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const corev1::Taint& x, const corev1::Taint& y) {
                      return k8s::SameTaint(x, y) && x.value() == y.value();
                    });
}

bool SameFacts(const NodeFacts& a, const NodeFacts& b) {
  return a.unschedulable == b.unschedulable && a.allocatable == b.allocatable && a.labels == b.labels &&
         SameTaints(a.taints, b.taints);
}

}  // namespace

void Intake::Released(const std::string& key) {
  if (PodPtr removed = cache_.RemovePod(key)) {
    ClusterEvent event{ClusterEvent::Kind::kPodRemoved, nullptr, nullptr, std::move(removed)};
    queue_.Notify(event);
  }
}

void Intake::Waiting(PodPtr pod) {
  PodPtr& known = waiting_[pod->key];
  const bool same_pod = known && known->uid == pod->uid;
  if (known && !same_pod) {  // a successor of the same name
    queue_.Remove(pod->key);
    Released(pod->key);
  }
  const bool spec_changed = same_pod && (known->signature != pod->signature || known->gated != pod->gated ||
                                         known->priority != pod->priority);
  known = pod;
  // Its binding is under way; the queue has nothing to do with it any more.
  if (cache_.IsAssumed(pod->key)) return;
  queue_.Set(std::move(pod), spec_changed);
}

void Intake::OnPod(const std::string& key, const corev1::Pod* pod) {
  const bool assigned = pod && !pod->spec().node_name().empty() && !k8s::IsTerminal(*pod);
  if (assigned) {
    if (waiting_.erase(key) > 0) queue_.Remove(key);
    cache_.SetPod(std::make_shared<const PodInfo>(*pod, names_));
    return;
  }
  const bool ours = pod && !k8s::IsTerminal(*pod) && !k8s::IsTerminating(*pod) &&
                    pod->spec().scheduler_name() == scheduler_name_;
  if (ours) {
    Waiting(std::make_shared<const PodInfo>(*pod, names_));
    return;
  }
  if (waiting_.erase(key) > 0) queue_.Remove(key);
  Released(key);
}

void Intake::OnNode(const std::string& name, const corev1::Node* node) {
  if (!node) {
    nodes_.erase(name);
    cache_.RemoveNode(name);
    return;
  }
  auto facts = std::make_shared<const NodeFacts>(*node, names_);
  std::shared_ptr<const NodeFacts>& known = nodes_[name];
  // Most updates of a node are heartbeats.
  if (known && SameFacts(*known, *facts)) return;
  ClusterEvent event{known ? ClusterEvent::Kind::kNodeChanged : ClusterEvent::Kind::kNodeAdded, facts, known,
                     nullptr};
  known = facts;
  cache_.SetNode(std::move(facts));
  queue_.Notify(event);
}

}  // namespace keelson::scheduler
