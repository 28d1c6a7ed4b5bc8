// What every node answers for a pod.
#include <algorithm>

#include "controlplane/scheduler/algorithm/algorithm.h"

namespace keelson::scheduler {

Algorithm::Diagnosis Algorithm::Diagnose(CycleState& state, const PodPtr& pod, Snapshot& snapshot) {
  Diagnosis diagnosis;
  std::optional<std::vector<std::string_view>> node_names;
  std::vector<std::string_view> plugins_with_nodes;
  diagnosis.pre_filter =
      framework_.RunPreFilterPlugins(state, *pod, snapshot, node_names, plugins_with_nodes);
  if (!diagnosis.pre_filter.status.ok()) return diagnosis;
  feasible_.clear();
  for (NodeInfo& node : snapshot.nodes) {
    if (!node.facts) continue;
    Diagnosis::Node& answer = diagnosis.nodes.emplace_back();
    answer.name = node.facts->name;
    if (node_names && std::find(node_names->begin(), node_names->end(), answer.name) == node_names->end()) {
      answer.plugin = plugins_with_nodes.front();
      answer.reasons.push_back("the pod is for other nodes");
      continue;
    }
    size_t by = 0;
    const FilterStatus status = framework_.RunFilterPluginsWithNominatedPods(state, *pod, node, by);
    if (status.ok()) {
      feasible_.push_back(node.slot);
      continue;
    }
    answer.plugin = framework_.filters()[by]->name();
    for (uint8_t i = 0; i < status.count; ++i) answer.reasons.push_back(reasons_.Text(status.reasons[i]));
    answer.details = framework_.filters()[by]->Details(state, *pod, node);
  }
  std::vector<Diagnosis::Node*> feasible;
  for (Diagnosis::Node& node : diagnosis.nodes) {
    if (node.plugin.empty()) feasible.push_back(&node);
  }
  if (!feasible.empty()) RunPreScorePlugins(state, *pod, snapshot);  // plugins may rely on at least one node
  for (size_t i = 0; !feasible.empty() && i < framework_.scores().size(); ++i) {
    if (state.skip_score_plugins >> i & 1) continue;
    RunScorePlugin(state, *pod, snapshot, i, nullptr);
    const Framework::WeightedScore& score = framework_.scores()[i];
    for (size_t j = 0; j < feasible.size(); ++j) {
      const int64_t weighted = plugin_scores_[j] * score.weight;
      feasible[j]->scores.emplace_back(score.plugin->name(), weighted);
      feasible[j]->total_score += weighted;
    }
  }
  std::sort(diagnosis.nodes.begin(), diagnosis.nodes.end(),
            [](const Diagnosis::Node& a, const Diagnosis::Node& b) {
              if (a.plugin.empty() != b.plugin.empty()) return a.plugin.empty();
              return a.total_score != b.total_score ? a.total_score > b.total_score : a.name < b.name;
            });
  return diagnosis;
}

}  // namespace keelson::scheduler
