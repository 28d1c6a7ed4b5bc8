#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class NodePorts : public FilterPlugin {
 public:
  explicit NodePorts(Reasons& reasons)
      : reason_(reasons.Intern("node(s) didn't have free ports for the requested pod ports")) {}
  std::string_view name() const override { return "NodePorts"; }

  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    if (pod.shape->ports.empty() || node.ports.empty() || !Conflict(pod.shape->ports, node.ports)) return {};
    return FilterStatus::Unschedulable(reason_);
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kAssignedPodDelete;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (event.kind == ClusterEvent::Kind::kAssignedPodDelete) {
      return Conflict(pod.shape->ports, event.pod->shape->ports);
    }
    return event.kind == ClusterEvent::Kind::kNodeAdd;
  }

 private:
  static bool Conflict(const std::vector<k8s::HostPort>& wanted, const std::vector<k8s::HostPort>& used) {
    for (const k8s::HostPort& port : wanted) {
      for (const k8s::HostPort& other : used) {
        if (k8s::Conflicts(port, other)) return true;
      }
    }
    return false;
  }

  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodePorts(Reasons& reasons) { return std::make_unique<NodePorts>(reasons); }

}  // namespace keelson::scheduler
