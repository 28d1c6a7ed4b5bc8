#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class TaintToleration : public FilterPlugin, public ScorePlugin {
 public:
  explicit TaintToleration(Reasons& reasons) : reason_(reasons.Intern("node(s) had untolerated taint(s)")) {}
  std::string_view name() const override { return "TaintToleration"; }

  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (Tolerates(pod, *node.facts)) return {};
    return FilterStatus::UnschedulableAndUnresolvable(reason_);
  }
  // Counts the taints that the pod would rather not meet.
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (node.facts->prefer_no_schedule == 0) return 0;
    int64_t count = 0;
    for (const corev1::Taint& taint : node.facts->taints) {
      if (taint.effect() == k8s::kPreferNoSchedule && !k8s::Tolerates(pod.shape->tolerations, taint)) ++count;
    }
    return count;
  }
  void NormalizeScore(const CycleState&, std::vector<int64_t>& scores) const override {
    DefaultNormalizeScore(scores, true);
  }
  std::string Details(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    const corev1::Taint* taint = k8s::FindUntolerated(node.facts->taints, pod.shape->tolerations);
    if (!taint) return "";
    return fmt::format("{}{}{}:{}", taint->key(), taint->value().empty() ? "" : "=", taint->value(),
                       taint->effect());
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !Tolerates(pod, *event.node)) return false;
    return !event.old_node || !Tolerates(pod, *event.old_node);
  }

 private:
  static bool Tolerates(const PodInfo& pod, const NodeFacts& node) {
    return !node.hard_taints || !k8s::FindUntolerated(node.taints, pod.shape->tolerations);
  }

  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewTaintToleration(Reasons& reasons) {
  return std::make_unique<TaintToleration>(reasons);
}

}  // namespace keelson::scheduler
