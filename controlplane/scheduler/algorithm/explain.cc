// What Schedule() finds, told node by node.
#include <algorithm>

#include "controlplane/scheduler/algorithm/algorithm.h"

namespace keelson::scheduler {

Algorithm::Account Algorithm::Explain(CycleState& state, const PodPtr& pod, Snapshot& snapshot) {
  Account account;
  std::optional<std::vector<std::string_view>> only;
  std::vector<std::string_view> narrowed_by;
  account.prefilter = framework_.PreFilter(state, *pod, snapshot, only, narrowed_by);
  if (!account.prefilter.status.ok()) return account;
  feasible_.clear();
  for (NodeInfo& node : snapshot.nodes) {
    if (!node.facts) continue;
    Account::Node& told = account.nodes.emplace_back();
    told.name = node.facts->name;
    if (only && std::find(only->begin(), only->end(), told.name) == only->end()) {
      told.refused_by = narrowed_by.front();
      told.reasons.push_back("the pod is for other nodes");
      continue;
    }
    size_t by = 0;
    const Verdict verdict = framework_.FilterBeside(state, *pod, node, by);
    if (verdict.ok()) {
      feasible_.push_back(node.slot);
      continue;
    }
    told.refused_by = framework_.filters()[by]->name();
    for (uint8_t i = 0; i < verdict.count; ++i) told.reasons.push_back(reasons_.Text(verdict.reasons[i]));
    told.numbers = framework_.filters()[by]->Explain(state, *pod, node);
  }
  std::vector<Account::Node*> told;
  for (Account::Node& node : account.nodes) {
    if (node.refused_by.empty()) told.push_back(&node);
  }
  if (!told.empty()) PreScore(state, *pod, snapshot);  // score plugins may count on a node to score
  for (size_t i = 0; !told.empty() && i < framework_.scores().size(); ++i) {
    if (state.skip_scores >> i & 1) continue;
    ScoreColumn(state, *pod, snapshot, i, nullptr);
    const Framework::Weighted& score = framework_.scores()[i];
    for (size_t j = 0; j < told.size(); ++j) {
      const int64_t weighted = column_[j] * score.weight;
      told[j]->scores.emplace_back(score.plugin->name(), weighted);
      told[j]->total += weighted;
    }
  }
  std::sort(account.nodes.begin(), account.nodes.end(), [](const Account::Node& a, const Account::Node& b) {
    if (a.refused_by.empty() != b.refused_by.empty()) return a.refused_by.empty();
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return account;
}

}  // namespace keelson::scheduler
