#include "controlplane/scheduler/preemption/trial.h"

#include <algorithm>

#include <fmt/format.h>

namespace keelson::scheduler {

namespace {

// Pods that have not been started count as started now.
int64_t StartOf(const PodInfo& pod) { return pod.started.seconds() > 0 ? pod.started.seconds() : INT64_MAX; }

bool MoreImportant(const PodPtr& a, const PodPtr& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  return StartOf(*a) < StartOf(*b);
}

// Takes from `pods` (in order) those whose eviction would break a budget.
std::vector<PodPtr> TakeViolating(std::vector<PodPtr>& pods, const std::vector<Budget>& budgets) {
  std::vector<PodPtr> violating, others;
  std::vector<int32_t> allowed;
  for (const Budget& budget : budgets) allowed.push_back(budget.allowed);
  for (const PodPtr& pod : pods) {
    bool violates = false;
    for (size_t i = 0; i < budgets.size(); ++i) {
      const Budget& budget = budgets[i];
      if (budget.ns != pod->ns || !budget.selector.Matches(pod->pod_class->labels)) continue;
      if (std::binary_search(budget.disrupted.begin(), budget.disrupted.end(), pod->name)) continue;
      if (--allowed[i] < 0) violates = true;
    }
    (violates ? violating : others).push_back(pod);
  }
  pods = std::move(others);
  return violating;
}

std::string Text(const Reasons& reasons, const Verdict& verdict) {
  std::vector<std::string_view> texts;
  for (uint8_t i = 0; i < verdict.count; ++i) texts.push_back(reasons.Text(verdict.reasons[i]));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Victims FindVictims(const Framework& framework, Reasons& reasons, CycleState& state, const PodInfo& pod,
                    NodeInfo& node, const std::vector<Budget>& budgets) {
  std::vector<PodPtr> lesser;
  for (const PodPtr& other : node.pods) {
    if (other->priority < pod.priority) lesser.push_back(other);
  }
  Victims out;
  if (lesser.empty()) {
    out.reason = "No preemption victims found for incoming pod";
    return out;
  }
  size_t by = 0;
  for (const PodPtr& other : lesser) framework.Move(state, pod, other, node, -1);
  if (const Verdict verdict = framework.FilterBeside(state, pod, node, by); !verdict.ok()) {
    for (const PodPtr& other : lesser) framework.Move(state, pod, other, node, 1);
    out.reason = Text(reasons, verdict);
    return out;
  }
  std::stable_sort(lesser.begin(), lesser.end(), MoreImportant);
  // Who may stay after all? Those that budgets protect are asked first, then the most important.
  const std::vector<PodPtr> protected_ones = TakeViolating(lesser, budgets);
  size_t violations = 0;
  for (const auto* group : {&protected_ones, const_cast<const std::vector<PodPtr>*>(&lesser)}) {
    for (const PodPtr& other : *group) {
      framework.Move(state, pod, other, node, 1);
      if (framework.FilterBeside(state, pod, node, by).ok()) continue;
      framework.Move(state, pod, other, node, -1);
      out.pods.push_back(other);
      violations += group == &protected_ones;
    }
  }
  for (const PodPtr& other : out.pods) framework.Move(state, pod, other, node, 1);
  return MakeVictims(std::move(out.pods), violations);
}

Victims MakeVictims(std::vector<PodPtr> pods, size_t violations) {
  Victims out;
  std::stable_sort(pods.begin(), pods.end(), MoreImportant);
  out.cost = {violations, pods.empty() ? INT32_MIN : pods[0]->priority, 0, pods.size(), -INT64_MAX};
  for (const PodPtr& pod : pods) {
    out.cost.sum += static_cast<int64_t>(pod->priority) + INT32_MAX + 1;
    if (pod->priority == out.cost.highest) out.cost.ran_since = std::max(out.cost.ran_since, -StartOf(*pod));
  }
  out.pods = std::move(pods);
  return out;
}

size_t LeastMissed(const std::vector<const Victims*>& candidates) {
  const auto least = std::min_element(candidates.begin(), candidates.end(),
                                      [](const Victims* a, const Victims* b) { return a->cost < b->cost; });
  return static_cast<size_t>(least - candidates.begin());
}

}  // namespace keelson::scheduler
