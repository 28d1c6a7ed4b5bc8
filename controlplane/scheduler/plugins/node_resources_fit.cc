#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/plugins/resource_usage.h"

namespace keelson::scheduler {

namespace {

class NodeResourcesFit : public FilterPlugin, public ScorePlugin {
 public:
  NodeResourcesFit(Reasons& reasons, NameIds& names, NodeResourcesFitArgs args)
      : reasons_(reasons),
        names_(names),
        args_(std::move(args)),
        scored_(Scored(args_.resources, names)),
        too_many_pods_(reasons.Intern("Too many pods")),
        cpu_(reasons.Intern("Insufficient cpu")),
        memory_(reasons.Intern("Insufficient memory")),
        ephemeral_storage_(reasons.Intern("Insufficient ephemeral-storage")) {}
  std::string_view name() const override { return "NodeResourcesFit"; }

  FilterStatus Filter(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    FilterStatus status;
    const Resources& asked = pod.requests;
    const Resources& all = node.allocatable;
    const Resources& used = node.requested;
    if (used.pods + 1 > all.pods) Lack(status, too_many_pods_, false);
    if (asked.milli_cpu > 0 && asked.milli_cpu > all.milli_cpu - used.milli_cpu) {
      Lack(status, cpu_, asked.milli_cpu > all.milli_cpu);
    }
    if (asked.memory > 0 && asked.memory > all.memory - used.memory) {
      Lack(status, memory_, asked.memory > all.memory);
    }
    if (asked.ephemeral_storage > 0 &&
        asked.ephemeral_storage > all.ephemeral_storage - used.ephemeral_storage) {
      Lack(status, ephemeral_storage_, asked.ephemeral_storage > all.ephemeral_storage);
    }
    for (const auto& [id, value] : asked.scalar_resources) {
      if (value == 0) continue;
      const int64_t capacity = all.Other(id);
      if (value <= capacity - used.Other(id)) continue;
      const Other& other = OtherOf(id);
      if (!other.ignored) Lack(status, other.reason, value > capacity);
    }
    return status;
  }
  std::string Details(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    std::vector<std::string> out;
    const auto tell = [&](std::string_view name, int64_t asked, int64_t used, int64_t all) {
      if (asked > 0 && asked > all - used) {
        out.push_back(fmt::format("{}: {} wanted, {} of {} in use", name, asked, used, all));
      }
    };
    tell("pods", 1, node.requested.pods, node.allocatable.pods);
    tell("cpu (milli)", pod.requests.milli_cpu, node.requested.milli_cpu, node.allocatable.milli_cpu);
    tell("memory", pod.requests.memory, node.requested.memory, node.allocatable.memory);
    tell("ephemeral-storage", pod.requests.ephemeral_storage, node.requested.ephemeral_storage,
         node.allocatable.ephemeral_storage);
    for (const auto& [id, value] : pod.requests.scalar_resources) {
      if (!OtherOf(id).ignored) {
        tell(names_.Name(id), value, node.requested.Other(id), node.allocatable.Other(id));
      }
    }
    return fmt::format("{}", fmt::join(out, "; "));
  }

  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    int64_t score = 0, weights = 0;
    const bool by_ratio = args_.strategy == NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio;
    for (const ScoredResource& resource : scored_) {
      const ScoredResource::Usage usage = resource.Of(pod, node, true);
      if (usage.capacity == 0) continue;
      const int64_t of_resource = ScoreOf(usage);
      if (by_ratio && of_resource <= 0) continue;
      score += of_resource * resource.weight();
      weights += resource.weight();
    }
    if (weights == 0) return 0;
    return by_ratio ? std::llround(static_cast<double>(score) / static_cast<double>(weights))
                    : score / weights;
  }

  uint32_t EventsToRegister() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kAssignedPodDelete | Kind::kAssignedPodUpdate | Kind::kNodeAdd | Kind::kNodeUpdate;
  }
  bool QueueingHint(const ClusterEvent& event, const PodInfo& pod) const override {
    switch (event.kind) {
      case ClusterEvent::Kind::kAssignedPodUpdate:
        return event.old_pod && AsksForLess(*event.pod, *event.old_pod, pod);
      case ClusterEvent::Kind::kNodeAdd:
        return Holds(event.node->allocatable, pod.requests);
      case ClusterEvent::Kind::kNodeUpdate:
        return !(event.node->allocatable == event.old_node->allocatable) &&
               Holds(event.node->allocatable, pod.requests);
      default:
        return true;  // a pod has gone: its place at least is free
    }
  }

 private:
  struct Other {
    uint16_t reason;
    bool ignored;
  };

  // What a node lacks even when empty, no eviction can give.
  static void Lack(FilterStatus& status, uint16_t reason, bool even_when_empty) {
    status.Add(reason);
    if (even_when_empty) {
      status.code = FilterStatus::Code::kUnschedulableAndUnresolvable;
    } else if (status.ok()) {
      status.code = FilterStatus::Code::kUnschedulable;
    }
  }
  static bool Holds(const Resources& all, const Resources& asked) {
    if (asked.milli_cpu > all.milli_cpu || asked.memory > all.memory || all.pods < 1 ||
        asked.ephemeral_storage > all.ephemeral_storage) {
      return false;
    }
    for (const auto& [id, value] : asked.scalar_resources) {
      if (value > all.Other(id)) return false;
    }
    return true;
  }
  static bool AsksForLess(const PodInfo& now, const PodInfo& before, const PodInfo& pod) {
    const auto less = [](int64_t a, int64_t b, int64_t wanted) { return wanted > 0 && a < b; };
    return less(now.requests.milli_cpu, before.requests.milli_cpu, pod.requests.milli_cpu) ||
           less(now.requests.memory, before.requests.memory, pod.requests.memory);
  }
  const Other& OtherOf(uint32_t id) {
    const auto [it, added] = others_.try_emplace(id);
    if (!added) return it->second;
    const std::string name = names_.Name(id);
    const auto listed = [](const std::vector<std::string>& list, std::string_view item) {
      return std::find(list.begin(), list.end(), item) != list.end();
    };
    it->second.reason = reasons_.Intern(fmt::format("Insufficient {}", name));
    it->second.ignored =
        k8s::IsExtendedResource(name) && (listed(args_.ignored_resources, name) ||
                                          listed(args_.ignored_groups, name.substr(0, name.find('/'))));
    return it->second;
  }

  int64_t ScoreOf(const ScoredResource::Usage& usage) const {
    switch (args_.strategy) {
      case NodeResourcesFitArgs::Strategy::kLeastAllocated:
        if (usage.requested > usage.capacity) return 0;
        return (usage.capacity - usage.requested) * kMaxNodeScore / usage.capacity;
      case NodeResourcesFitArgs::Strategy::kMostAllocated:
        return std::min(usage.requested, usage.capacity) * kMaxNodeScore / usage.capacity;
      case NodeResourcesFitArgs::Strategy::kRequestedToCapacityRatio:
        return OnShape(usage.requested > usage.capacity ? 100 : usage.requested * 100 / usage.capacity);
    }
    return 0;
  }
  // Between two points of the shape scores lie on a line.
  int64_t OnShape(int64_t utilization) const {
    const auto& shape = args_.shape;
    const auto score = [&](size_t i) { return shape[i].second * 10; };
    for (size_t i = 0; i < shape.size(); ++i) {
      if (utilization > shape[i].first) continue;
      if (i == 0) return score(0);
      return score(i - 1) + (score(i) - score(i - 1)) * (utilization - shape[i - 1].first) /
                                (shape[i].first - shape[i - 1].first);
    }
    return shape.empty() ? 0 : score(shape.size() - 1);
  }

  Reasons& reasons_;
  NameIds& names_;
  const NodeResourcesFitArgs args_;
  const std::vector<ScoredResource> scored_;
  const uint16_t too_many_pods_, cpu_, memory_, ephemeral_storage_;
  std::unordered_map<uint32_t, Other> others_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, NameIds& resources, NodeResourcesFitArgs args) {
  return std::make_unique<NodeResourcesFit>(reasons, resources, std::move(args));
}

}  // namespace keelson::scheduler
