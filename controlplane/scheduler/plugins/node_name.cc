#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class NodeName : public FilterPlugin {
 public:
  explicit NodeName(Reasons& reasons)
      : reason_(reasons.Intern("node(s) didn't match the requested node name")) {}
  std::string_view name() const override { return "NodeName"; }

  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (pod.node_name.empty() || pod.node_name == node.facts->name) return {};
    return FilterStatus::UnschedulableAndUnresolvable(reason_);
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    return event.kind == ClusterEvent::Kind::kNodeAdd && event.node->name == pod.node_name;
  }

 private:
  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeName(Reasons& reasons) { return std::make_unique<NodeName>(reasons); }

}  // namespace keelson::scheduler
