#include <algorithm>

#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

class NodeDeclaredFeatures : public PreFilterPlugin, public FilterPlugin {
 public:
  explicit NodeDeclaredFeatures(Reasons& reasons)
      : reason_(reasons.Intern("node(s) didn't match Pod's required features")) {}
  std::string_view name() const override { return "NodeDeclaredFeatures"; }

  PreFilterResult PreFilter(CycleState&, const PodInfo& pod, const Snapshot&) override {
    PreFilterResult result;
    if (pod.shape->features.empty()) result.status = Status::Skip();
    return result;
  }
  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    return Declares(*node.facts, pod) ? FilterStatus() : FilterStatus::UnschedulableAndUnresolvable(reason_);
  }
  std::string Details(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    return fmt::format(
        "the pod needs {}; the node declares {}", fmt::join(pod.shape->features, ", "),
        node.facts->features.empty() ? "nothing" : fmt::format("{}", fmt::join(node.facts->features, ", ")));
  }
  uint32_t EventsToRegister() const override {
    return ClusterEvent::Kind::kNodeAdd | ClusterEvent::Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    if (!event.node || !Declares(*event.node, pod)) return false;
    return !event.old_node || !Declares(*event.old_node, pod);
  }

 private:
  static bool Declares(const NodeFacts& node, const PodInfo& pod) {
    return std::includes(node.features.begin(), node.features.end(), pod.shape->features.begin(),
                         pod.shape->features.end());
  }

  const uint16_t reason_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeDeclaredFeatures(Reasons& reasons) {
  return std::make_unique<NodeDeclaredFeatures>(reasons);
}

}  // namespace keelson::scheduler
