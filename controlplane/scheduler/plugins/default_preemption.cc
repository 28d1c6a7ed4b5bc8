#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "controlplane/scheduler/framework/lru_cache.h"
#include "controlplane/scheduler/framework/metrics.h"
#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/preemption/victims.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kShapes = 8;  // whose dry runs are kept
constexpr char kNotHelpful[] = "Preemption is not helpful for scheduling";

std::string Summary(size_t nodes, const std::map<std::string, size_t>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(fmt::format("{} {}", count, reason));
  std::sort(parts.begin(), parts.end());
  return fmt::format("preemption: 0/{} nodes are available: {}.", nodes, fmt::join(parts, ", "));
}

class DefaultPreemption : public PreEnqueuePlugin, public PostFilterPlugin {
 public:
  DefaultPreemption(const Framework& framework, Reasons& reasons, PreemptionExecutor& executor,
                    DefaultPreemptionArgs args)
      : framework_(framework), reasons_(reasons), executor_(executor), args_(args) {}
  std::string_view name() const override { return "DefaultPreemption"; }

  bool PreEnqueue(const PodInfo& pod) const override { return !executor_.IsPodRunningPreemption(pod); }

  PostFilterResult PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                              const NodeToStatusReader& statuses) override {
    TheMetrics().preemptions.With().Increment();
    const std::vector<uint32_t> resolvable = statuses.NodesForStatusCode(FilterStatus::Code::kUnschedulable);
    if (std::string problem = Ineligible(state, *pod, snapshot, resolvable); !problem.empty()) {
      return {std::nullopt, "preemption: " + problem};
    }
    if (resolvable.empty()) return {"", Summary(snapshot.count(), {{kNotHelpful, snapshot.count()}})};

    const std::shared_ptr<const std::vector<DisruptionBudget>> budgets = executor_.DisruptionBudgets();
    std::vector<uint32_t> slots;
    std::vector<const Victims*> candidates;
    std::map<std::string, size_t> reasons;
    DryRuns& dry_runs = DryRunsOf(state, *pod, snapshot, budgets);
    FindCandidates(state, *pod, snapshot, *budgets, resolvable, dry_runs, slots, candidates, reasons);
    if (candidates.empty()) {
      if (resolvable.size() < snapshot.count()) reasons[kNotHelpful] += snapshot.count() - resolvable.size();
      return {"", Summary(snapshot.count(), reasons)};
    }
    NodeToVictims left;
    if (executor_.ExtendersSupportPreemption(*pod)) {
      for (size_t i = 0; i < slots.size(); ++i) left.emplace(slots[i], *candidates[i]);
      if (Result<> called = executor_.CallExtenders(*pod, snapshot, left); !called) {
        return {std::nullopt, "preemption: " + called.error().message()};
      }
      if (left.empty()) return {std::nullopt, "preemption: no candidate node for preemption"};
      slots.clear();
      candidates.clear();
      for (const auto& [slot, victims] : left) {
        slots.push_back(slot);
        candidates.push_back(&victims);
      }
    }
    const size_t chosen = PickOneNodeForPreemption(candidates);
    const NodeInfo& node = snapshot.nodes[slots[chosen]];
    std::vector<PodPtr> lower_priority_nominated_pods;
    for (const PodPtr& other : node.nominated) {
      if (other->priority < pod->priority) lower_priority_nominated_pods.push_back(other);
    }
    TheMetrics().victims.HistogramWith().Observe(static_cast<double>(candidates[chosen]->pods.size()));
    executor_.PrepareCandidateAsync(pod, node.facts->name, candidates[chosen]->pods,
                                    std::move(lower_priority_nominated_pods));
    return {node.facts->name, ""};
  }

 private:
  struct DryRun {
    uint64_t generation = 0;
    Victims victims;
  };
  struct DryRuns {
    std::shared_ptr<const std::vector<DisruptionBudget>> budgets;  // that they hold for
    std::vector<DryRun> by_slot;
  };

  // Why the pod may not preempt; empty: it may.
  static std::string Ineligible(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                const std::vector<uint32_t>& resolvable) {
    if (pod.shape->never_preempts) return "not eligible due to preemptionPolicy=Never.";
    const NodeInfo* nominated = state.nominated_node.empty() ? nullptr : snapshot.Find(state.nominated_node);
    // A nomination is void where preemption does not help any more.
    if (!nominated || std::find(resolvable.begin(), resolvable.end(), nominated->slot) == resolvable.end()) {
      return "";
    }
    for (const PodPtr& other : nominated->pods) {
      if (other->priority < pod.priority && other->terminating && other->evicted) {
        return "not eligible due to a terminating pod on the nominated node.";
      }
    }
    return "";
  }

  // Dry runs are kept for other pods of the shape unless a nonlocal filter takes part in them.
  DryRuns& DryRunsOf(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                     const std::shared_ptr<const std::vector<DisruptionBudget>>& budgets) {
    DryRuns* dry_runs = &unkept_;
    if (!framework_.HasNonlocalFilter(state)) {
      dry_runs = &kept_.Get(pod.shape->id, [] { return std::make_unique<DryRuns>(); });
    }
    if (dry_runs == &unkept_ || dry_runs->budgets != budgets) dry_runs->by_slot.clear();
    dry_runs->budgets = budgets;
    dry_runs->by_slot.resize(snapshot.nodes.size());
    return *dry_runs;
  }

  void FindCandidates(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                      const std::vector<DisruptionBudget>& budgets, const std::vector<uint32_t>& resolvable,
                      DryRuns& dry_runs, std::vector<uint32_t>& slots,
                      std::vector<const Victims*>& candidates, std::map<std::string, size_t>& reasons) {
    const size_t most = resolvable.size();
    const size_t share = most * static_cast<size_t>(args_.min_candidates_percentage) / 100;
    const size_t enough = std::min(most, std::max(share, static_cast<size_t>(args_.min_candidates)));
    size_t at = next_++ % most, without_violations = 0;
    for (size_t i = 0; i < most; ++i, at = at + 1 == most ? 0 : at + 1) {
      NodeInfo& node = snapshot.nodes[resolvable[at]];
      DryRun& dry_run = dry_runs.by_slot[node.slot];
      const bool nominated = state.IsNominated(node);
      if (dry_run.generation != node.generation || nominated) {
        dry_run.victims = SelectVictimsOnNode(framework_, reasons_, state, pod, node, budgets);
        dry_run.generation = nominated ? 0 : node.generation;
      }
      if (dry_run.victims.pods.empty()) {
        if (candidates.empty()) ++reasons[dry_run.victims.reason];
        continue;
      }
      slots.push_back(node.slot);
      candidates.push_back(&dry_run.victims);
      without_violations += dry_run.victims.cost.num_pdb_violations == 0;
      if (without_violations > 0 && candidates.size() >= enough) return;
    }
  }

  const Framework& framework_;
  Reasons& reasons_;
  PreemptionExecutor& executor_;
  const DefaultPreemptionArgs args_;
  size_t next_ = 0;  // where the next search starts
  LruCache<DryRuns> kept_{kShapes};
  DryRuns unkept_;
};

}  // namespace

std::unique_ptr<Plugin> NewDefaultPreemption(const Framework& framework, Reasons& reasons,
                                             PreemptionExecutor& executor, DefaultPreemptionArgs args) {
  return std::make_unique<DefaultPreemption>(framework, reasons, executor, args);
}

}  // namespace keelson::scheduler
