#include "controlplane/scheduler/preemption/victims.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::scheduler {

namespace {

// A pod that has not started counts as started now.
int64_t StartOf(const PodInfo& pod) { return pod.started.seconds() > 0 ? pod.started.seconds() : INT64_MAX; }

bool MoreImportant(const PodPtr& a, const PodPtr& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  return StartOf(*a) < StartOf(*b);
}

// Moves out of `pods`, which is in order, those whose eviction would violate a budget.
std::vector<PodPtr> TakeViolating(std::vector<PodPtr>& pods, const std::vector<DisruptionBudget>& budgets) {
  std::vector<PodPtr> violating, others;
  std::vector<int32_t> allowed;
  for (const DisruptionBudget& budget : budgets) allowed.push_back(budget.disruptions_allowed);
  for (const PodPtr& pod : pods) {
    bool violates = false;
    for (size_t i = 0; i < budgets.size(); ++i) {
      const DisruptionBudget& budget = budgets[i];
      if (budget.ns != pod->ns || !budget.selector.Matches(pod->pod_class->labels)) continue;
      if (std::binary_search(budget.disrupted_pods.begin(), budget.disrupted_pods.end(), pod->name)) continue;
      if (--allowed[i] < 0) violates = true;
    }
    (violates ? violating : others).push_back(pod);
  }
  pods = std::move(others);
  return violating;
}

std::string Text(const Reasons& reasons, const FilterStatus& status) {
  std::vector<std::string_view> texts;
  for (uint8_t i = 0; i < status.count; ++i) texts.push_back(reasons.Text(status.reasons[i]));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Victims SelectVictimsOnNode(const Framework& framework, Reasons& reasons, CycleState& state,
                            const PodInfo& pod, NodeInfo& node,
                            const std::vector<DisruptionBudget>& budgets) {
  std::vector<PodPtr> potential_victims;
  for (const PodPtr& other : node.pods) {
    if (other->priority < pod.priority) potential_victims.push_back(other);
  }
  Victims out;
  if (potential_victims.empty()) {
    out.reason = "No preemption victims found for incoming pod";
    return out;
  }
  size_t by = 0;
  for (const PodPtr& other : potential_victims) framework.RemovePod(state, pod, other, node);
  if (const FilterStatus status = framework.RunFilterPluginsWithNominatedPods(state, pod, node, by);
      !status.ok()) {
    for (const PodPtr& other : potential_victims) framework.AddPod(state, pod, other, node);
    out.reason = Text(reasons, status);
    return out;
  }
  std::stable_sort(potential_victims.begin(), potential_victims.end(), MoreImportant);
  // Reprieve as many as possible: first those that budgets protect, then the most important.
  const std::vector<PodPtr> violating_victims = TakeViolating(potential_victims, budgets);
  size_t num_pdb_violations = 0;
  for (const auto* group : {&violating_victims, const_cast<const std::vector<PodPtr>*>(&potential_victims)}) {
    for (const PodPtr& other : *group) {
      framework.AddPod(state, pod, other, node);
      if (framework.RunFilterPluginsWithNominatedPods(state, pod, node, by).ok()) continue;
      framework.RemovePod(state, pod, other, node);
      out.pods.push_back(other);
      num_pdb_violations += group == &violating_victims;
    }
  }
  for (const PodPtr& other : out.pods) framework.AddPod(state, pod, other, node);
  return MakeVictims(std::move(out.pods), num_pdb_violations);
}

Victims MakeVictims(std::vector<PodPtr> pods, size_t num_pdb_violations) {
  Victims out;
  std::stable_sort(pods.begin(), pods.end(), MoreImportant);
  out.cost = {num_pdb_violations, pods.empty() ? INT32_MIN : pods[0]->priority, 0, pods.size(), -INT64_MAX};
  for (const PodPtr& pod : pods) {
    out.cost.sum_priorities += static_cast<int64_t>(pod->priority) + INT32_MAX + 1;
    if (pod->priority == out.cost.highest_priority) {
      out.cost.negated_earliest_start = std::max(out.cost.negated_earliest_start, -StartOf(*pod));
    }
  }
  out.pods = std::move(pods);
  return out;
}

size_t PickOneNodeForPreemption(const std::vector<const Victims*>& candidates) {
  const auto least = std::min_element(candidates.begin(), candidates.end(),
                                      [](const Victims* a, const Victims* b) { return a->cost < b->cost; });
  return static_cast<size_t>(least - candidates.begin());
}

}  // namespace keelson::scheduler
