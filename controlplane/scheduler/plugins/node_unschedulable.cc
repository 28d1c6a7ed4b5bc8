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

  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (Tolerates(pod, *node.facts)) return {};
    return FilterStatus::UnschedulableAndUnresolvable(reason_);
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !Tolerates(pod, *event.node)) return false;
    return !event.old_node || !Tolerates(pod, *event.old_node);
  }

 private:
  bool Tolerates(const PodInfo& pod, const NodeFacts& node) const {
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
