#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

constexpr char kTaintKey[] = "node.kubernetes.io/unschedulable";

class NodeUnschedulable : public FilterPlugin {
 public:
  explicit NodeUnschedulable(Reasons& reasons) : reason_(reasons.Intern("node(s) were unschedulable")) {
    taint_.set_key(kTaintKey);
    taint_.set_effect(std::string(k8s::kNoSchedule));
  }
  std::string_view name() const override { return "NodeUnschedulable"; }

  Verdict Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (Admits(pod, *node.facts)) return {};
    return Verdict::Unresolvable(reason_);
  }
  uint32_t interests() const override {
    return ClusterEvent::Kind::kNodeAdded | ClusterEvent::Kind::kNodeChanged;
  }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !Admits(pod, *event.node)) return false;
    return !event.old_node || !Admits(pod, *event.old_node);
  }

 private:
  bool Admits(const PodInfo& pod, const NodeFacts& node) const {
    return !node.unschedulable || k8s::Tolerates(pod.shape->tolerations, taint_);
  }

  const uint16_t reason_;
  corev1::Taint taint_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeUnschedulable(Reasons& reasons) {
  return std::make_unique<NodeUnschedulable>(reasons);
}

}  // namespace keelson::scheduler
