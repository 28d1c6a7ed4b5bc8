#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

// Share of `capacity` that is left, 0..kMax.
int64_t LeastRequested(int64_t requested, int64_t capacity) {
  if (capacity == 0 || requested > capacity) return 0;
  return (capacity - requested) * ScorePlugin::kMax / capacity;
}

class NodeResourcesFit : public FilterPlugin, public ScorePlugin {
 public:
  NodeResourcesFit(Reasons& reasons, const ResourceNames& names)
      : reasons_(reasons),
        names_(names),
        too_many_pods_(reasons.Intern("Too many pods")),
        cpu_(reasons.Intern("Insufficient cpu")),
        memory_(reasons.Intern("Insufficient memory")),
        ephemeral_storage_(reasons.Intern("Insufficient ephemeral-storage")) {}
  std::string_view name() const override { return "NodeResourcesFit"; }

  Verdict Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    Verdict verdict;
    const Resources& asked = pod.requests;
    const Resources& all = node.allocatable;
    const Resources& used = node.used;
    if (used.pods + 1 > all.pods) Lack(verdict, too_many_pods_, false);
    if (asked.milli_cpu > 0 && asked.milli_cpu > all.milli_cpu - used.milli_cpu) {
      Lack(verdict, cpu_, asked.milli_cpu > all.milli_cpu);
    }
    if (asked.memory > 0 && asked.memory > all.memory - used.memory) {
      Lack(verdict, memory_, asked.memory > all.memory);
    }
    if (asked.ephemeral_storage > 0 &&
        asked.ephemeral_storage > all.ephemeral_storage - used.ephemeral_storage) {
      Lack(verdict, ephemeral_storage_, asked.ephemeral_storage > all.ephemeral_storage);
    }
    for (const auto& [id, value] : asked.others) {
      const int64_t capacity = all.Other(id);
      if (value > 0 && value > capacity - used.Other(id)) Lack(verdict, ReasonOf(id), value > capacity);
    }
    return verdict;
  }
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    return (LeastRequested(node.scoring_milli_cpu + pod.scoring.milli_cpu, node.allocatable.milli_cpu) +
            LeastRequested(node.scoring_memory + pod.scoring.memory, node.allocatable.memory)) /
           2;
  }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    switch (event.kind) {
      case ClusterEvent::Kind::kPodRemoved:
        return true;  // the pod slot at least
      case ClusterEvent::Kind::kNodeAdded:
        return Holds(event.node->allocatable, pod.requests);
      case ClusterEvent::Kind::kNodeChanged:
        return !(event.node->allocatable == event.old_node->allocatable) &&
               Holds(event.node->allocatable, pod.requests);
      case ClusterEvent::Kind::kFlush:
        return true;
    }
    return true;
  }

 private:
  // What a node lacks even when empty, no eviction can give.
  static void Lack(Verdict& verdict, uint16_t reason, bool even_when_empty) {
    verdict.Add(reason);
    if (even_when_empty) {
      verdict.code = Verdict::Code::kUnresolvable;
    } else if (verdict.ok()) {
      verdict.code = Verdict::Code::kUnschedulable;
    }
  }
  static bool Holds(const Resources& all, const Resources& asked) {
    if (asked.milli_cpu > all.milli_cpu || asked.memory > all.memory || all.pods < 1 ||
        asked.ephemeral_storage > all.ephemeral_storage) {
      return false;
    }
    for (const auto& [id, value] : asked.others) {
      if (value > all.Other(id)) return false;
    }
    return true;
  }
  uint16_t ReasonOf(uint32_t id) {
    const auto [it, added] = other_reasons_.try_emplace(id, 0);
    if (added) it->second = reasons_.Intern(fmt::format("Insufficient {}", names_.Name(id)));
    return it->second;
  }

  Reasons& reasons_;
  const ResourceNames& names_;
  const uint16_t too_many_pods_, cpu_, memory_, ephemeral_storage_;
  std::unordered_map<uint32_t, uint16_t> other_reasons_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, const ResourceNames& names) {
  return std::make_unique<NodeResourcesFit>(reasons, names);
}

}  // namespace keelson::scheduler
