#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class NodeName : public FilterPlugin {
 public:
  explicit NodeName(Reasons& reasons)
      : reason_(reasons.Intern("node(s) didn't match the requested node name")) {}
  std::string_view name() const override { return "NodeName"; }

  Verdict Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (pod.node_name.empty() || pod.node_name == node.facts->name) return {};
    return Verdict::Unresolvable(reason_);
  }
  uint32_t interests() const override {
    return ClusterEvent::Kind::kNodeAdded | ClusterEvent::Kind::kNodeChanged;
  }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    return event.kind == ClusterEvent::Kind::kNodeAdded && event.node->name == pod.node_name;
  }

 private:
  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeName(Reasons& reasons) { return std::make_unique<NodeName>(reasons); }

}  // namespace keelson::scheduler
