#include "controlplane/scheduler/algorithm/algorithm.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/scheduler/framework/metrics.h"

namespace keelson::scheduler {

namespace {

constexpr size_t kShapes = 64;     // remembered at once
constexpr size_t kFewNodes = 100;  // always looked at

}  // namespace

std::string Diagnosis::Message(const Reasons& reasons) const {
  if (node_count == 0) return "no nodes available to schedule pods";
  std::string out = fmt::format("0/{} nodes are available:", node_count);
  if (!prefilter.empty()) {
    out += fmt::format(" {}.", prefilter);
  } else {
    std::vector<std::string> parts;
    for (const auto& [id, count] : this->reasons)
      parts.push_back(fmt::format("{} {}", count, reasons.Text(id)));
    std::sort(parts.begin(), parts.end());
    if (!parts.empty()) out += fmt::format(" {}.", fmt::join(parts, ", "));
  }
  if (!postfilter.empty()) out += " " + postfilter;
  return out;
}

// Those of the last FindFeasible().
class Algorithm::Verdicts : public NodeVerdicts {
 public:
  explicit Verdicts(const Algorithm& algorithm) : algorithm_(algorithm) {}
  std::vector<uint32_t> Resolvable() const override {
    std::vector<uint32_t> out;
    for (const auto& [slot, id] : algorithm_.refused_) {
      if (algorithm_.verdicts_[id].verdict.code == Verdict::Code::kUnschedulable) out.push_back(slot);
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
  verdicts_.push_back({});
}

size_t Algorithm::EnoughNodes(size_t nodes, int percentage) {
  if (nodes < kFewNodes || percentage >= 100) return nodes;
  size_t share = static_cast<size_t>(percentage);
  if (percentage <= 0) {
    share = nodes / 125 < 45 ? 50 - nodes / 125 : 5;
  }
  return std::max(nodes * share / 100, kFewNodes);
}

Algorithm::Memory& Algorithm::MemoryOf(const PodShape& shape, const Snapshot& snapshot) {
  const auto known = by_shape_.find(shape.id);
  if (known != by_shape_.end()) {
    memories_.splice(memories_.begin(), memories_, known->second);
  } else {
    if (memories_.size() == kShapes) {
      by_shape_.erase(memories_.back().shape);
      memories_.splice(memories_.begin(), memories_, std::prev(memories_.end()));  // its arrays serve on
      std::fill(memories_.front().generation.begin(), memories_.front().generation.end(), 0);
      std::fill(memories_.front().scored.begin(), memories_.front().scored.end(), 0);
    } else {
      memories_.emplace_front();
      memories_.front().scores.resize(framework_.scores().size());
    }
    memories_.front().shape = shape.id;
    by_shape_.emplace(shape.id, memories_.begin());
  }
  Memory& memory = memories_.front();
  const size_t slots = snapshot.nodes.size();
  if (memory.generation.size() < slots) {
    memory.generation.resize(slots);
    memory.scored.resize(slots);
    memory.verdict.resize(slots);
    for (std::vector<int32_t>& column : memory.scores) column.resize(slots);
  }
  uint64_t epoch = 0;
  for (const Framework::Weighted& score : framework_.scores()) epoch += score.plugin->epoch(snapshot);
  if (memory.epoch != epoch) std::fill(memory.scored.begin(), memory.scored.end(), 0);
  memory.epoch = epoch;
  return memory;
}

uint16_t Algorithm::Intern(const Verdict& verdict, size_t filter) {
  if (verdict.ok()) return 0;
  for (size_t i = 1; i < verdicts_.size(); ++i) {
    if (verdicts_[i].verdict == verdict && verdicts_[i].filter == filter) return static_cast<uint16_t>(i);
  }
  verdicts_.push_back({verdict, static_cast<uint8_t>(filter)});
  return static_cast<uint16_t>(verdicts_.size() - 1);
}

uint16_t Algorithm::EvaluateLocal(const CycleState& state, const PodInfo& pod, const NodeInfo& node,
                                  Memory* memory) {
  if (memory && memory->generation[node.slot] == node.generation) return memory->verdict[node.slot];
  const auto& filters = framework_.filters();
  uint16_t id = 0;
  for (size_t i = 0; i < local_filters_ && id == 0; ++i) {
    if (!(state.skip_filters >> i & 1)) id = Intern(filters[i]->Filter(state, pod, node), i);
  }
  if (memory) {
    memory->generation[node.slot] = node.generation;
    memory->verdict[node.slot] = id;
  }
  return id;
}

// Of a node that others are nominated for. What is found is remembered as of any node, unless it depends on
// who asks.
uint16_t Algorithm::EvaluateBeside(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory) {
  if (state.IsPromised(node) || rest_) memory = nullptr;
  if (memory && memory->generation[node.slot] == node.generation) return memory->verdict[node.slot];
  size_t by = 0;
  const Verdict verdict = framework_.FilterBeside(state, pod, node, by);
  const uint16_t id = Intern(verdict, by);
  if (memory) {
    memory->generation[node.slot] = node.generation;
    memory->verdict[node.slot] = id;
  }
  return id;
}

uint16_t Algorithm::Evaluate(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory) {
  if (!node.nominated.empty()) return EvaluateBeside(state, pod, node, memory);
  const uint16_t id = EvaluateLocal(state, pod, node, memory);
  if (id != 0 || !rest_) return id;
  size_t by = 0;
  const Verdict verdict = framework_.Filter(state, pod, node, local_filters_, by);
  return verdict.ok() ? 0 : Intern(verdict, by);
}

void Algorithm::Visit(CycleState& state, const PodInfo& pod, NodeInfo& node, Memory* memory,
                      Decision& decision) {
  if (!node.facts) return;
  ++decision.evaluated;
  const uint16_t id = Evaluate(state, pod, node, memory);
  if (id == 0) {
    feasible_.push_back(node.slot);
  } else {
    refused_.emplace_back(node.slot, id);
  }
}

void Algorithm::FindFeasible(CycleState& state, const PodInfo& pod, Snapshot& snapshot,
                             const std::vector<std::string_view>* only, Memory* memory, Decision& decision) {
  feasible_.clear();
  refused_.clear();
  if (only) {
    for (std::string_view name : *only) {
      const auto it = snapshot.slots.find(std::string(name));
      if (it != snapshot.slots.end()) Visit(state, pod, snapshot.nodes[it->second], memory, decision);
    }
  } else {
    const size_t slots = snapshot.nodes.size();
    const size_t enough = options_.extenders && options_.extenders->Interested(pod)
                              ? snapshot.count()
                              : EnoughNodes(snapshot.count(), options_.percentage);
    size_t slot = slots == 0 ? 0 : next_start_ % slots;
    for (size_t i = 0; i < slots && feasible_.size() < enough; ++i) {
      Visit(state, pod, snapshot.nodes[slot], memory, decision);
      if (++slot == slots) slot = 0;
    }
    next_start_ = slot;
  }
  decision.feasible = feasible_.size();
}

void Algorithm::Diagnose(const std::vector<std::string_view>& narrowed_by, Decision& decision) {
  Diagnosis& diagnosis = decision.diagnosis;
  verdict_counts_.assign(verdicts_.size(), 0);
  for (const auto& [slot, id] : refused_) ++verdict_counts_[id];
  uint64_t rejected = 0;
  for (size_t id = 1; id < verdict_counts_.size(); ++id) {
    if (verdict_counts_[id] == 0) continue;
    const Refusal& refusal = verdicts_[id];
    rejected |= uint64_t{1} << refusal.filter;
    for (uint8_t i = 0; i < refusal.verdict.count; ++i) {
      diagnosis.reasons[refusal.verdict.reasons[i]] += verdict_counts_[id];
    }
  }
  for (size_t i = 0; i < framework_.filters().size(); ++i) {
    if (rejected >> i & 1) diagnosis.rejected_by.push_back(framework_.filters()[i]->name());
  }
  if (!narrowed_by.empty() && decision.evaluated < diagnosis.node_count) {
    const std::string text =
        fmt::format("node(s) didn't satisfy plugin(s) [{}]", fmt::join(narrowed_by, " "));
    diagnosis.reasons[reasons_.Intern(text)] += diagnosis.node_count - decision.evaluated;
    for (std::string_view plugin : narrowed_by) {
      if (std::find(diagnosis.rejected_by.begin(), diagnosis.rejected_by.end(), plugin) ==
          diagnosis.rejected_by.end()) {
        diagnosis.rejected_by.push_back(plugin);
      }
    }
  }
}

bool Algorithm::AskExtenders(const PodInfo& pod, const Snapshot& snapshot, Decision& decision) {
  if (!options_.extenders || feasible_.empty() || !options_.extenders->Interested(pod)) return true;
  std::vector<Extenders::Refusal> refused;
  if (Result<> asked = options_.extenders->Filter(pod, snapshot, feasible_, refused); !asked) {
    decision.error = asked.error().message();
    return false;
  }
  for (const Extenders::Refusal& refusal : refused) {
    ++decision.diagnosis.reasons[reasons_.Intern(refusal.reason)];
  }
  decision.feasible = feasible_.size();
  return true;
}

void Algorithm::PreScore(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) {
  const auto& scores = framework_.scores();
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].plugin->PreScore(state, pod, snapshot, feasible_).skip())
      state.skip_scores |= uint64_t{1} << i;
  }
}

// Fills column_ with what one plugin says of the feasible nodes, normalized.
void Algorithm::ScoreColumn(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                            size_t score, Memory* memory) {
  ScorePlugin& plugin = *framework_.scores()[score].plugin;
  column_.resize(feasible_.size());
  if (memory && plugin.local()) {
    const std::vector<int32_t>& kept = memory->scores[score];
    for (size_t j = 0; j < feasible_.size(); ++j) column_[j] = kept[feasible_[j]];
  } else {
    for (size_t j = 0; j < feasible_.size(); ++j)
      column_[j] = plugin.Score(state, pod, snapshot.nodes[feasible_[j]]);
  }
  plugin.Normalize(state, column_);
}

uint32_t Algorithm::Best(CycleState& state, const PodInfo& pod, const Snapshot& snapshot, Memory* memory) {
  if (feasible_.size() == 1) return feasible_[0];
  const PointTime start = std::chrono::steady_clock::now();
  PreScore(state, pod, snapshot);
  framework_.times().Observe(PointTimes::kPreScore, Status::Code::kSuccess, start);
  const PointTime scoring = std::chrono::steady_clock::now();
  const auto& scores = framework_.scores();
  if (memory) {
    for (uint32_t slot : feasible_) {
      const NodeInfo& node = snapshot.nodes[slot];
      if (memory->scored[slot] == node.generation) continue;
      memory->scored[slot] = node.generation;
      for (size_t i = 0; i < scores.size(); ++i) {
        if (!scores[i].plugin->local() || state.skip_scores >> i & 1) continue;
        memory->scores[i][slot] = static_cast<int32_t>(scores[i].plugin->Score(state, pod, node));
      }
    }
  }
  totals_.assign(feasible_.size(), 0);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (state.skip_scores >> i & 1) continue;
    ScoreColumn(state, pod, snapshot, i, memory);
    for (size_t j = 0; j < feasible_.size(); ++j) totals_[j] += column_[j] * scores[i].weight;
  }
  framework_.times().Observe(PointTimes::kScore, Status::Code::kSuccess, scoring);
  if (options_.extenders && options_.extenders->Interested(pod)) {
    options_.extenders->Prioritize(pod, snapshot, feasible_, totals_);
  }
  // Any of the best, each with the same chance.
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

void Algorithm::PostFilter(CycleState& state, const PodPtr& pod, Snapshot& snapshot, Decision& decision) {
  const Verdicts verdicts(*this);
  const PointTime start = std::chrono::steady_clock::now();
  for (PostFilterPlugin* plugin : framework_.post_filters()) {
    PostFilterPlugin::Outcome outcome = plugin->PostFilter(state, pod, snapshot, verdicts);
    if (!outcome.message.empty()) {
      if (!decision.diagnosis.postfilter.empty()) decision.diagnosis.postfilter += " ";
      decision.diagnosis.postfilter += outcome.message;
    }
    if (outcome.nominated_node) decision.nominate = std::move(outcome.nominated_node);
    if (decision.nominate && !decision.nominate->empty()) break;
  }
  const bool helped = decision.nominate && !decision.nominate->empty();
  framework_.times().Observe(PointTimes::kPostFilter,
                             helped ? Status::Code::kSuccess : Status::Code::kUnschedulable, start);
}

Decision Algorithm::Schedule(CycleState& state, const PodPtr& pod, Snapshot& snapshot,
                             std::string_view nominated) {
  Decision decision;
  state.nominated_node = nominated;
  decision.diagnosis.node_count = snapshot.count();
  feasible_.clear();
  refused_.clear();
  if (snapshot.count() == 0) return decision;
  std::optional<std::vector<std::string_view>> only;
  std::vector<std::string_view> narrowed_by;
  if (Judgement judged = framework_.PreFilter(state, *pod, snapshot, only, narrowed_by);
      !judged.status.ok()) {
    if (!judged.status.rejected()) {
      decision.error = std::move(judged.status.message);
      return decision;
    }
    decision.diagnosis.prefilter = std::move(judged.status.message);
    decision.diagnosis.rejected_by.push_back(judged.plugin);
    PostFilter(state, pod, snapshot, decision);
    return decision;
  }
  rest_ = false;
  for (size_t i = local_filters_; i < framework_.filters().size(); ++i)
    rest_ = rest_ || !(state.skip_filters >> i & 1);
  // A pod that names its node is not worth a memory: no other looks where it looks.
  Memory* memory = only ? nullptr : &MemoryOf(*pod->shape, snapshot);
  if (!nominated.empty()) {
    const std::vector<std::string_view> promised = {nominated};
    FindFeasible(state, *pod, snapshot, &promised, nullptr, decision);
    if (!AskExtenders(*pod, snapshot, decision)) return decision;
  }
  if (feasible_.empty()) {
    decision.evaluated = 0;
    const PointTime start = std::chrono::steady_clock::now();
    FindFeasible(state, *pod, snapshot, only ? &*only : nullptr, memory, decision);
    framework_.times().Observe(PointTimes::kFilter,
                               feasible_.empty() ? Status::Code::kUnschedulable : Status::Code::kSuccess,
                               start);
    if (!AskExtenders(*pod, snapshot, decision)) return decision;
  }
  if (feasible_.empty()) {
    Diagnose(narrowed_by, decision);
    PostFilter(state, pod, snapshot, decision);
    return decision;
  }
  decision.node = snapshot.nodes[Best(state, *pod, snapshot, memory)].facts->name;
  return decision;
}

}  // namespace keelson::scheduler
