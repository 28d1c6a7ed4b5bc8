#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "controlplane/scheduler/framework/metrics.h"
#include "controlplane/scheduler/framework/recent.h"
#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/preemption/trial.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kShapes = 8;  // whose trials are remembered
constexpr char kNotHelpful[] = "Preemption is not helpful for scheduling";

std::string Summary(size_t nodes, const std::map<std::string, size_t>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [reason, count] : reasons) parts.push_back(fmt::format("{} {}", count, reason));
  std::sort(parts.begin(), parts.end());
  return fmt::format("preemption: 0/{} nodes are available: {}.", nodes, fmt::join(parts, ", "));
}

class DefaultPreemption : public PreEnqueuePlugin, public PostFilterPlugin {
 public:
  DefaultPreemption(const Framework& framework, Reasons& reasons, Evictor& evictor, PreemptionArgs args)
      : framework_(framework), reasons_(reasons), evictor_(evictor), args_(args) {}
  std::string_view name() const override { return "DefaultPreemption"; }

  bool Admits(const PodInfo& pod) const override { return !evictor_.Busy(pod); }

  Outcome PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                     const NodeVerdicts& verdicts) override {
    TheMetrics().preemptions.With().Increment();
    const std::vector<uint32_t> resolvable = verdicts.Resolvable();
    if (std::string why = WhyNot(state, *pod, snapshot, resolvable); !why.empty()) {
      return {std::nullopt, "preemption: " + why};
    }
    if (resolvable.empty()) return {"", Summary(snapshot.count(), {{kNotHelpful, snapshot.count()}})};

    const std::shared_ptr<const std::vector<Budget>> budgets = evictor_.Budgets();
    std::vector<uint32_t> slots;
    std::vector<const Victims*> candidates;
    std::map<std::string, size_t> reasons;
    Trials& trials = TrialsOf(state, *pod, snapshot, budgets);
    FindCandidates(state, *pod, snapshot, *budgets, resolvable, trials, slots, candidates, reasons);
    if (candidates.empty()) {
      if (resolvable.size() < snapshot.count()) reasons[kNotHelpful] += snapshot.count() - resolvable.size();
      return {"", Summary(snapshot.count(), reasons)};
    }
    VictimsBySlot left;
    if (evictor_.Consults(*pod)) {
      for (size_t i = 0; i < slots.size(); ++i) left.emplace(slots[i], *candidates[i]);
      if (Result<> told = evictor_.Consult(*pod, snapshot, left); !told) {
        return {std::nullopt, "preemption: " + told.error().message()};
      }
      if (left.empty()) return {std::nullopt, "preemption: no candidate node for preemption"};
      slots.clear();
      candidates.clear();
      for (const auto& [slot, victims] : left) {
        slots.push_back(slot);
        candidates.push_back(&victims);
      }
    }
    const size_t best = LeastMissed(candidates);
    const NodeInfo& node = snapshot.nodes[slots[best]];
    std::vector<PodPtr> outranked;
    for (const PodPtr& other : node.nominated) {
      if (other->priority < pod->priority) outranked.push_back(other);
    }
    TheMetrics().victims.HistogramWith().Observe(static_cast<double>(candidates[best]->pods.size()));
    evictor_.Evict(pod, node.facts->name, candidates[best]->pods, std::move(outranked));
    return {node.facts->name, ""};
  }

 private:
  struct Trial {
    uint64_t generation = 0;
    Victims victims;
  };
  struct Trials {
    std::shared_ptr<const std::vector<Budget>> budgets;  // that they were made with
    std::vector<Trial> by_slot;
  };

  // Empty: the pod may preempt.
  static std::string WhyNot(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                            const std::vector<uint32_t>& resolvable) {
    if (pod.shape->never_preempts) return "not eligible due to preemptionPolicy=Never.";
    const NodeInfo* promised = state.nominated_node.empty() ? nullptr : snapshot.Find(state.nominated_node);
    // Where nothing helps any more the promise is void.
    if (!promised || std::find(resolvable.begin(), resolvable.end(), promised->slot) == resolvable.end())
      return "";
    for (const PodPtr& other : promised->pods) {
      if (other->priority < pod.priority && other->terminating && other->evicted) {
        return "not eligible due to a terminating pod on the nominated node.";
      }
    }
    return "";
  }

  // Trials are remembered for pods of one shape while only their node decides them.
  Trials& TrialsOf(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                   const std::shared_ptr<const std::vector<Budget>>& budgets) {
    Trials* trials = &once_;
    if (!framework_.LooksAround(state)) {
      trials = &remembered_.Get(pod.shape->id, [] { return std::make_unique<Trials>(); });
    }
    if (trials == &once_ || trials->budgets != budgets) trials->by_slot.clear();
    trials->budgets = budgets;
    trials->by_slot.resize(snapshot.nodes.size());
    return *trials;
  }

  void FindCandidates(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                      const std::vector<Budget>& budgets, const std::vector<uint32_t>& resolvable,
                      Trials& trials, std::vector<uint32_t>& slots, std::vector<const Victims*>& candidates,
                      std::map<std::string, size_t>& reasons) {
    const size_t most = resolvable.size();
    const size_t share = most * static_cast<size_t>(args_.min_candidates_percentage) / 100;
    const size_t enough = std::min(most, std::max(share, static_cast<size_t>(args_.min_candidates)));
    size_t at = next_++ % most, without_violations = 0;
    for (size_t i = 0; i < most; ++i, at = at + 1 == most ? 0 : at + 1) {
      NodeInfo& node = snapshot.nodes[resolvable[at]];
      Trial& trial = trials.by_slot[node.slot];
      const bool promised = state.IsPromised(node);
      if (trial.generation != node.generation || promised) {
        trial.victims = FindVictims(framework_, reasons_, state, pod, node, budgets);
        trial.generation = promised ? 0 : node.generation;
      }
      if (trial.victims.pods.empty()) {
        if (candidates.empty()) ++reasons[trial.victims.reason];
        continue;
      }
      slots.push_back(node.slot);
      candidates.push_back(&trial.victims);
      without_violations += trial.victims.cost.violations == 0;
      if (without_violations > 0 && candidates.size() >= enough) return;
    }
  }

  const Framework& framework_;
  Reasons& reasons_;
  Evictor& evictor_;
  const PreemptionArgs args_;
  size_t next_ = 0;  // nodes take turns
  Recent<Trials> remembered_{kShapes};
  Trials once_;
};

}  // namespace

std::unique_ptr<Plugin> NewDefaultPreemption(const Framework& framework, Reasons& reasons, Evictor& evictor,
                                             PreemptionArgs args) {
  return std::make_unique<DefaultPreemption>(framework, reasons, evictor, args);
}

}  // namespace keelson::scheduler
