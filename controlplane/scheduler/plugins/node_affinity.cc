#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

std::vector<PreferredTerm> PreferredOf(const corev1::NodeAffinity& affinity) {
  std::vector<PreferredTerm> out;
  for (const auto& term : affinity.preferred_during_scheduling_ignored_during_execution()) {
    if (term.weight() != 0) out.push_back({term.weight(), k8s::NodeTerm(term.preference())});
  }
  return out;
}

k8s::RequiredNodeAffinity RequiredOf(const corev1::NodeAffinity& affinity) {
  corev1::PodSpec spec;
  *spec.mutable_affinity()->mutable_node_affinity() = affinity;
  return k8s::RequiredNodeAffinity(spec);
}

class NodeAffinity : public PreFilterPlugin, public FilterPlugin, public ScorePlugin {
 public:
  NodeAffinity(Reasons& reasons, const corev1::NodeAffinity& added)
      : reason_(reasons.Intern("node(s) didn't match Pod's node affinity/selector")),
        added_reason_(reasons.Intern("node(s) didn't match scheduler-enforced node affinity")),
        added_(RequiredOf(added)),
        added_preferred_(PreferredOf(added)) {}
  std::string_view name() const override { return "NodeAffinity"; }

  PreFilterResult PreFilter(CycleState&, const PodInfo& pod, const Snapshot&) override {
    PreFilterResult result;
    result.node_names = pod.shape->affinity.Names();
    if (added_.IsEverything() && pod.shape->affinity.IsEverything()) result.status = Status::Skip();
    return result;
  }
  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (!added_.Matches(node.facts->view())) return FilterStatus::UnschedulableAndUnresolvable(added_reason_);
    if (!pod.shape->affinity.Matches(node.facts->view())) {
      return FilterStatus::UnschedulableAndUnresolvable(reason_);
    }
    return {};
  }
  Status PreScore(CycleState&, const PodInfo& pod, const Snapshot&, std::span<const uint32_t>) override {
    return pod.shape->preferred.empty() && added_preferred_.empty() ? Status::Skip() : Status();
  }
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    int64_t score = 0;
    for (const auto* terms : {&added_preferred_, &pod.shape->preferred}) {
      for (const PreferredTerm& preferred : *terms) {
        if (preferred.term.Matches(node.facts->view())) score += preferred.weight;
      }
    }
    return score;
  }
  void NormalizeScore(const CycleState&, std::vector<int64_t>& scores) const override {
    DefaultNormalizeScore(scores, false);
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !MatchesNode(pod, *event.node)) return false;
    return !event.old_node || !MatchesNode(pod, *event.old_node);
  }

 private:
  bool MatchesNode(const PodInfo& pod, const NodeFacts& node) const {
    return added_.Matches(node.view()) && pod.shape->affinity.Matches(node.view());
  }

  const uint16_t reason_, added_reason_;
  const k8s::RequiredNodeAffinity added_;
  const std::vector<PreferredTerm> added_preferred_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeAffinity(Reasons& reasons, const corev1::NodeAffinity& added) {
  return std::make_unique<NodeAffinity>(reasons, added);
}

}  // namespace keelson::scheduler
