#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/plugins/resource_usage.h"

namespace keelson::scheduler {

namespace {

class NodeResourcesFit : public FilterPlugin, public ScorePlugin {
 public:
  NodeResourcesFit(Reasons& reasons, NameIds& names, FitArgs args)
      : reasons_(reasons),
        names_(names),
        args_(std::move(args)),
        scored_(Scored(args_.resources, names)),
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
      if (value == 0) continue;
      const int64_t capacity = all.Other(id);
      if (value <= capacity - used.Other(id)) continue;
      const Other& other = OtherOf(id);
      if (!other.ignored) Lack(verdict, other.reason, value > capacity);
    }
    return verdict;
  }
  std::string Explain(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    std::vector<std::string> out;
    const auto tell = [&](std::string_view name, int64_t asked, int64_t used, int64_t all) {
      if (asked > 0 && asked > all - used) {
        out.push_back(fmt::format("{}: {} wanted, {} of {} in use", name, asked, used, all));
      }
    };
    tell("pods", 1, node.used.pods, node.allocatable.pods);
    tell("cpu (milli)", pod.requests.milli_cpu, node.used.milli_cpu, node.allocatable.milli_cpu);
    tell("memory", pod.requests.memory, node.used.memory, node.allocatable.memory);
    tell("ephemeral-storage", pod.requests.ephemeral_storage, node.used.ephemeral_storage,
         node.allocatable.ephemeral_storage);
    for (const auto& [id, value] : pod.requests.others) {
      if (!OtherOf(id).ignored) tell(names_.Name(id), value, node.used.Other(id), node.allocatable.Other(id));
    }
    return fmt::format("{}", fmt::join(out, "; "));
  }

  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    int64_t score = 0, weights = 0;
    const bool by_ratio = args_.strategy == FitArgs::Strategy::kRequestedToCapacityRatio;
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

  uint32_t interests() const override {
    using Kind = ClusterEvent::Kind;
    return Kind::kPodRemoved | Kind::kPodChanged | Kind::kNodeAdded | Kind::kNodeChanged;
  }
  bool MayHelp(const ClusterEvent& event, const PodInfo& pod) const override {
    switch (event.kind) {
      case ClusterEvent::Kind::kPodChanged:
        return event.old_pod && AsksForLess(*event.pod, *event.old_pod, pod);
      case ClusterEvent::Kind::kNodeAdded:
        return Holds(event.node->allocatable, pod.requests);
      case ClusterEvent::Kind::kNodeChanged:
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
      case FitArgs::Strategy::kLeastAllocated:
        if (usage.requested > usage.capacity) return 0;
        return (usage.capacity - usage.requested) * kMax / usage.capacity;
      case FitArgs::Strategy::kMostAllocated:
        return std::min(usage.requested, usage.capacity) * kMax / usage.capacity;
      case FitArgs::Strategy::kRequestedToCapacityRatio:
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
  const FitArgs args_;
  const std::vector<ScoredResource> scored_;
  const uint16_t too_many_pods_, cpu_, memory_, ephemeral_storage_;
  std::unordered_map<uint32_t, Other> others_;
};

}  // namespace

std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, NameIds& resources, FitArgs args) {
  return std::make_unique<NodeResourcesFit>(reasons, resources, std::move(args));
}

}  // namespace keelson::scheduler
