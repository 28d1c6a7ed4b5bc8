#include "controlplane/scheduler/algorithm/algorithm.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kEquivalenceCaches = 64;  // for so many shapes
constexpr size_t kMinFeasibleNodesToFind = 100;

}  // namespace

std::string FitError::Message(const Reasons& reasons) const {
  if (num_all_nodes == 0) return "no nodes available to schedule pods";
  std::string out = fmt::format("0/{} nodes are available:", num_all_nodes);
  if (!pre_filter_message.empty()) {
    out += fmt::format(" {}.", pre_filter_message);
  } else {
    std::vector<std::string> parts;
    for (const auto& [id, count] : this->reasons) {
      parts.push_back(fmt::format("{} {}", count, reasons.Text(id)));
    }
    std::sort(parts.begin(), parts.end());
    if (!parts.empty()) out += fmt::format(" {}.", fmt::join(parts, ", "));
  }
  if (!post_filter_message.empty()) out += " " + post_filter_message;
  return out;
}

// The statuses of the last FindNodesThatPassFilters().
class Algorithm::NodeToStatus : public NodeToStatusReader {
 public:
  explicit NodeToStatus(const Algorithm& algorithm) : algorithm_(algorithm) {}
  std::vector<uint32_t> NodesForStatusCode(FilterStatus::Code code) const override {
    std::vector<uint32_t> out;
    for (const auto& [slot, id] : algorithm_.rejected_) {
      if (algorithm_.filter_results_[id].status.code == code) out.push_back(slot);
    }
    return out;
  }

 private:
  const Algorithm& algorithm_;
};

Algorithm::Algorithm(const Framework& framework, Reasons& reasons, AlgorithmOptions options)
    : framework_(framework),
      reasons_(reasons),
      options_(options),
      random_(options.seed != 0 ? options.seed : std::random_device()()) {
  const auto& filters = framework.filters();
  while (local_filters_ < filters.size() && filters[local_filters_]->local()) ++local_filters_;
  filter_results_.push_back({});
}

size_t Algorithm::NumFeasibleNodesToFind(size_t nodes, int percentage) {
  if (nodes < kMinFeasibleNodesToFind || percentage >= 100) return nodes;
  size_t share = static_cast<size_t>(percentage);
  if (percentage <= 0) {
    share = nodes / 125 < 45 ? 50 - nodes / 125 : 5;
  }
  return std::max(nodes * share / 100, kMinFeasibleNodesToFind);
}

Algorithm::EquivalenceCache& Algorithm::EquivalenceCacheOf(const PodShape& shape, const Snapshot& snapshot) {
  const auto known = by_shape_.find(shape.id);
  if (known != by_shape_.end()) {
    equivalence_caches_.splice(equivalence_caches_.begin(), equivalence_caches_, known->second);
  } else {
    if (equivalence_caches_.size() == kEquivalenceCaches) {
      by_shape_.erase(equivalence_caches_.back().shape);
      equivalence_caches_.splice(equivalence_caches_.begin(), equivalence_caches_,
                                 std::prev(equivalence_caches_.end()));  // its arrays are used again
      std::fill(equivalence_caches_.front().filtered.begin(), equivalence_caches_.front().filtered.end(), 0);
      std::fill(equivalence_caches_.front().scored.begin(), equivalence_caches_.front().scored.end(), 0);
    } else {
      equivalence_caches_.emplace_front();
      equivalence_caches_.front().scores.resize(framework_.scores().size());
    }
    equivalence_caches_.front().shape = shape.id;
    by_shape_.emplace(shape.id, equivalence_caches_.begin());
  }
  EquivalenceCache& cache = equivalence_caches_.front();
  const size_t slots = snapshot.nodes.size();
  if (cache.filtered.size() < slots) {
    cache.filtered.resize(slots);
    cache.scored.resize(slots);
    cache.filter_result.resize(slots);
    for (std::vector<int32_t>& column : cache.scores) column.resize(slots);
  }
  uint64_t epoch = 0;
  for (const Framework::WeightedScore& score : framework_.scores()) epoch += score.plugin->epoch(snapshot);
  if (cache.epoch != epoch) std::fill(cache.scored.begin(), cache.scored.end(), 0);
  cache.epoch = epoch;
  return cache;
}

uint16_t Algorithm::Intern(const FilterStatus& status, size_t filter) {
  if (status.ok()) return 0;
  for (size_t i = 1; i < filter_results_.size(); ++i) {
    if (filter_results_[i].status == status && filter_results_[i].filter == filter) {
      return static_cast<uint16_t>(i);
    }
  }
  filter_results_.push_back({status, static_cast<uint8_t>(filter)});
  return static_cast<uint16_t>(filter_results_.size() - 1);
}

uint16_t Algorithm::EvaluateLocal(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                  EquivalenceCache* cache) {
  if (cache && cache->filtered[node.slot] == node.generation) return cache->filter_result[node.slot];
  const auto& filters = framework_.filters();
  uint16_t id = 0;
  for (size_t i = 0; i < local_filters_ && id == 0; ++i) {
    if (!(state.skip_filter_plugins >> i & 1)) id = Intern(filters[i]->Filter(state, pod, node), i);
  }
  if (cache) {
    cache->filtered[node.slot] = node.generation;
    cache->filter_result[node.slot] = id;
  }
  return id;
}

// For a node that other pods are nominated for. The result is kept as for any node, unless it depends on which
// pod of the shape asks.
uint16_t Algorithm::EvaluateWithNominatedPods(CycleState& state, const PodInfo& pod, NodeInfo& node,
                                              EquivalenceCache* cache) {
  if (state.IsNominated(node) || run_nonlocal_filters_) cache = nullptr;
  if (cache && cache->filtered[node.slot] == node.generation) return cache->filter_result[node.slot];
  size_t by = 0;
  const FilterStatus status = framework_.RunFilterPluginsWithNominatedPods(state, pod, node, by);
  const uint16_t id = Intern(status, by);
  if (cache) {
    cache->filtered[node.slot] = node.generation;
    cache->filter_result[node.slot] = id;
  }
  return id;
}

uint16_t Algorithm::Evaluate(CycleState& state, const PodInfo& pod, NodeInfo& node, EquivalenceCache* cache) {
  if (!node.nominated.empty()) return EvaluateWithNominatedPods(state, pod, node, cache);
  const uint16_t id = EvaluateLocal(state, pod, node, cache);
  if (id != 0 || !run_nonlocal_filters_) return id;
  size_t by = 0;
  const FilterStatus status = framework_.RunFilterPlugins(state, pod, node, local_filters_, by);
  return status.ok() ? 0 : Intern(status, by);
}

void Algorithm::FilterNode(CycleState& state, const PodInfo& pod, NodeInfo& node, EquivalenceCache* cache,
                           ScheduleResult& result) {
  if (!node.facts) return;
  ++result.evaluated_nodes;
  const uint16_t id = Evaluate(state, pod, node, cache);
  if (id == 0) {
    feasible_.push_back(node.slot);
  } else {
    rejected_.emplace_back(node.slot, id);
  }
}

void Algorithm::FindNodesThatPassFilters(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                                         const std::vector<std::string_view>* node_names,
                                         EquivalenceCache* cache, ScheduleResult& result) {
  feasible_.clear();
  rejected_.clear();
  if (node_names) {
    for (std::string_view name : *node_names) {
      const auto it = snapshot.slots.find(std::string(name));
      if (it != snapshot.slots.end()) FilterNode(state, pod, snapshot.nodes[it->second], cache, result);
    }
  } else {
    const size_t slots = snapshot.nodes.size();
    const size_t enough =
        options_.extenders && options_.extenders->IsInterested(pod)
            ? snapshot.count()
            : NumFeasibleNodesToFind(snapshot.count(), options_.percentage_of_nodes_to_score);
    size_t slot = slots == 0 ? 0 : next_start_node_index_ % slots;
    for (size_t i = 0; i < slots && feasible_.size() < enough; ++i) {
      FilterNode(state, pod, snapshot.nodes[slot], cache, result);
      if (++slot == slots) slot = 0;
    }
    next_start_node_index_ = slot;
  }
  result.feasible_nodes = feasible_.size();
}

void Algorithm::FillFitError(const std::vector<std::string_view>& plugins_with_nodes,
                             ScheduleResult& result) {
  FitError& fit_error = result.fit_error;
  filter_result_counts_.assign(filter_results_.size(), 0);
  for (const auto& [slot, id] : rejected_) ++filter_result_counts_[id];
  uint64_t rejected = 0;
  for (size_t id = 1; id < filter_result_counts_.size(); ++id) {
    if (filter_result_counts_[id] == 0) continue;
    const FilterResult& filter_result = filter_results_[id];
    rejected |= uint64_t{1} << filter_result.filter;
    for (uint8_t i = 0; i < filter_result.status.count; ++i) {
      fit_error.reasons[filter_result.status.reasons[i]] += filter_result_counts_[id];
    }
  }
  for (size_t i = 0; i < framework_.filters().size(); ++i) {
    if (rejected >> i & 1) fit_error.unschedulable_plugins.push_back(framework_.filters()[i]->name());
  }
  if (!plugins_with_nodes.empty() && result.evaluated_nodes < fit_error.num_all_nodes) {
    const std::string text =
        fmt::format("node(s) didn't satisfy plugin(s) [{}]", fmt::join(plugins_with_nodes, " "));
    fit_error.reasons[reasons_.Intern(text)] += fit_error.num_all_nodes - result.evaluated_nodes;
    for (std::string_view plugin : plugins_with_nodes) {
      if (std::find(fit_error.unschedulable_plugins.begin(), fit_error.unschedulable_plugins.end(), plugin) ==
          fit_error.unschedulable_plugins.end()) {
        fit_error.unschedulable_plugins.push_back(plugin);
      }
    }
  }
}

bool Algorithm::FindNodesThatPassExtenders(const PodInfo& pod, const Snapshot& snapshot,
                                           ScheduleResult& result) {
  if (!options_.extenders || feasible_.empty() || !options_.extenders->IsInterested(pod)) return true;
  std::vector<Extenders::FailedNode> failed_nodes;
  if (Result<> asked = options_.extenders->Filter(pod, snapshot, feasible_, failed_nodes); !asked) {
    result.error = asked.error().message();
    return false;
  }
  for (const Extenders::FailedNode& failed : failed_nodes) {
    ++result.fit_error.reasons[reasons_.Intern(failed.reason)];
  }
  result.feasible_nodes = feasible_.size();
  return true;
}

void Algorithm::RunPreScorePlugins(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) {
  const auto& scores = framework_.scores();
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].plugin->PreScore(state, pod, snapshot, feasible_).skip()) {
      state.skip_score_plugins |= uint64_t{1} << i;
    }
  }
}

void Algorithm::RunScorePlugin(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                               size_t score, EquivalenceCache* cache) {
  ScorePlugin& plugin = *framework_.scores()[score].plugin;
  plugin_scores_.resize(feasible_.size());
  if (cache && plugin.local()) {
    const std::vector<int32_t>& kept = cache->scores[score];
    for (size_t j = 0; j < feasible_.size(); ++j) plugin_scores_[j] = kept[feasible_[j]];
  } else {
    for (size_t j = 0; j < feasible_.size(); ++j) {
      plugin_scores_[j] = plugin.Score(state, pod, snapshot.nodes[feasible_[j]]);
    }
  }
  plugin.NormalizeScore(state, plugin_scores_);
}

void Algorithm::PrioritizeNodes(CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                                EquivalenceCache* cache) {
  const PointTime start = std::chrono::steady_clock::now();
  RunPreScorePlugins(state, pod, snapshot);
  framework_.times().Observe(ExtensionPointTimes::kPreScore, Status::Code::kSuccess, start);
  const PointTime scoring = std::chrono::steady_clock::now();
  const auto& scores = framework_.scores();
  if (cache) {
    for (uint32_t slot : feasible_) {
      const NodeInfo& node = snapshot.nodes[slot];
      if (cache->scored[slot] == node.generation) continue;
      cache->scored[slot] = node.generation;
      for (size_t i = 0; i < scores.size(); ++i) {
        if (!scores[i].plugin->local() || state.skip_score_plugins >> i & 1) continue;
        cache->scores[i][slot] = static_cast<int32_t>(scores[i].plugin->Score(state, pod, node));
      }
    }
  }
  totals_.assign(feasible_.size(), 0);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (state.skip_score_plugins >> i & 1) continue;
    RunScorePlugin(state, pod, snapshot, i, cache);
    for (size_t j = 0; j < feasible_.size(); ++j) totals_[j] += plugin_scores_[j] * scores[i].weight;
  }
  framework_.times().Observe(ExtensionPointTimes::kScore, Status::Code::kSuccess, scoring);
  if (options_.extenders && options_.extenders->IsInterested(pod)) {
    options_.extenders->Prioritize(pod, snapshot, feasible_, totals_);
  }
}

uint32_t Algorithm::SelectHost() {
  size_t best = 0;
  uint64_t ties = 1;
  for (size_t j = 1; j < totals_.size(); ++j) {
    if (totals_[j] > totals_[best]) {
      best = j;
      ties = 1;
    } else if (totals_[j] == totals_[best] && random_() % ++ties == 0) {
      best = j;
    }
  }
  return feasible_[best];
}

void Algorithm::RunPostFilterPlugins(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                                     ScheduleResult& result) {
  const NodeToStatus statuses(*this);
  const PointTime start = std::chrono::steady_clock::now();
  for (PostFilterPlugin* plugin : framework_.post_filters()) {
    PostFilterResult post_filter = plugin->PostFilter(state, pod, snapshot, statuses);
    if (!post_filter.message.empty()) {
      if (!result.fit_error.post_filter_message.empty()) result.fit_error.post_filter_message += " ";
      result.fit_error.post_filter_message += post_filter.message;
    }
    if (post_filter.nominated_node_name) {
      result.nominated_node_name = std::move(post_filter.nominated_node_name);
    }
    if (result.nominated_node_name && !result.nominated_node_name->empty()) break;
  }
  const bool helped = result.nominated_node_name && !result.nominated_node_name->empty();
  framework_.times().Observe(ExtensionPointTimes::kPostFilter,
                             helped ? Status::Code::kSuccess : Status::Code::kUnschedulable, start);
}

ScheduleResult Algorithm::SchedulePod(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                                      std::string_view nominated_node) {
  ScheduleResult result;
  state.nominated_node = nominated_node;
  result.fit_error.num_all_nodes = snapshot.count();
  feasible_.clear();
  rejected_.clear();
  if (snapshot.count() == 0) return result;
  std::optional<std::vector<std::string_view>> node_names;
  std::vector<std::string_view> plugins_with_nodes;
  if (PluginStatus pre_filter =
          framework_.RunPreFilterPlugins(state, *pod, snapshot, node_names, plugins_with_nodes);
      !pre_filter.status.ok()) {
    if (!pre_filter.status.rejected()) {
      result.error = std::move(pre_filter.status.message);
      return result;
    }
    result.fit_error.pre_filter_message = std::move(pre_filter.status.message);
    result.fit_error.unschedulable_plugins.push_back(pre_filter.plugin);
    RunPostFilterPlugins(state, pod, snapshot, result);
    return result;
  }
  run_nonlocal_filters_ = false;
  for (size_t i = local_filters_; i < framework_.filters().size(); ++i) {
    run_nonlocal_filters_ = run_nonlocal_filters_ || !(state.skip_filter_plugins >> i & 1);
  }
  // The answers for a pod that names its nodes are of no use to other pods.
  EquivalenceCache* cache = node_names ? nullptr : &EquivalenceCacheOf(*pod->shape, snapshot);
  if (!nominated_node.empty()) {
    const std::vector<std::string_view> nominated = {nominated_node};
    FindNodesThatPassFilters(state, *pod, snapshot, &nominated, nullptr, result);
    if (!FindNodesThatPassExtenders(*pod, snapshot, result)) return result;
  }
  if (feasible_.empty()) {
    result.evaluated_nodes = 0;
    const PointTime start = std::chrono::steady_clock::now();
    FindNodesThatPassFilters(state, *pod, snapshot, node_names ? &*node_names : nullptr, cache, result);
    framework_.times().Observe(ExtensionPointTimes::kFilter,
                               feasible_.empty() ? Status::Code::kUnschedulable : Status::Code::kSuccess,
                               start);
    if (!FindNodesThatPassExtenders(*pod, snapshot, result)) return result;
  }
  if (feasible_.empty()) {
    FillFitError(plugins_with_nodes, result);
    RunPostFilterPlugins(state, pod, snapshot, result);
    return result;
  }
  uint32_t host = feasible_[0];
  if (feasible_.size() > 1) {
    PrioritizeNodes(state, *pod, snapshot, cache);
    host = SelectHost();
  }
  result.suggested_host = snapshot.nodes[host].facts->name;
  return result;
}

}  // namespace keelson::scheduler
