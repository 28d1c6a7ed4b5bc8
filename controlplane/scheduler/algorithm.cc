#include "controlplane/scheduler/algorithm.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace keelson::scheduler {

namespace {

constexpr size_t kSignatures = 16;  // remembered at once
constexpr size_t kFewNodes = 100;   // always looked at

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

Algorithm::Algorithm(const Framework& framework, int percentage, uint64_t seed)
    : framework_(framework), percentage_(percentage), random_(seed != 0 ? seed : std::random_device()()) {
  if (framework.scores().size() > kMaxScores) std::abort();
}

size_t Algorithm::EnoughNodes(size_t nodes, int percentage) {
  if (nodes < kFewNodes || percentage >= 100) return nodes;
  size_t share = static_cast<size_t>(percentage);
  if (percentage <= 0) {
    share = nodes / 125 < 45 ? 50 - nodes / 125 : 5;
  }
  return std::max(nodes * share / 100, kFewNodes);
}

Algorithm::Memory& Algorithm::MemoryOf(const PodInfo& pod, size_t slots) {
  const auto known = by_signature_.find(pod.signature);
  if (known != by_signature_.end()) {
    memories_.splice(memories_.begin(), memories_, known->second);
  } else {
    if (memories_.size() == kSignatures) {
      // The oldest makes room; its array serves on, and the epoch tells old results from new ones.
      by_signature_.erase(memories_.back().signature);
      memories_.splice(memories_.begin(), memories_, std::prev(memories_.end()));
    } else {
      memories_.emplace_front();
    }
    memories_.front().signature = pod.signature;
    memories_.front().epoch = ++epoch_;
    by_signature_.emplace(memories_.front().signature, memories_.begin());
  }
  memories_.front().nodes.resize(slots);
  return memories_.front();
}

const Algorithm::Cached& Algorithm::Evaluate(const CycleState& state, const PodInfo& pod,
                                             const NodeInfo& node, uint32_t epoch, Cached& cached) {
  if (cached.generation == node.generation && cached.epoch == epoch) return cached;
  cached.generation = node.generation;
  cached.epoch = epoch;
  cached.scored = false;
  cached.verdict = {};
  const std::vector<FilterPlugin*>& filters = framework_.filters();
  for (size_t i = 0; i < filters.size() && cached.verdict.ok(); ++i) {
    cached.verdict = filters[i]->Filter(state, pod, node);
    cached.plugin = static_cast<uint8_t>(i);
  }
  return cached;
}

void Algorithm::Visit(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot, size_t slot,
                      Memory& memory, Decision& decision) {
  const NodeInfo& node = snapshot.nodes[slot];
  if (!node.facts) return;
  ++decision.evaluated;
  const Cached& cached = Evaluate(state, pod, node, memory.epoch, memory.nodes[slot]);
  if (cached.verdict.ok()) {
    feasible_.push_back(slot);
    return;
  }
  rejected_ |= 1u << cached.plugin;
  for (uint8_t i = 0; i < cached.verdict.count; ++i) {
    const uint16_t reason = cached.verdict.reasons[i];
    if (reason >= reason_counts_.size()) reason_counts_.resize(reason + 1u);
    ++reason_counts_[reason];
  }
}

void Algorithm::FindFeasible(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                             const std::vector<std::string_view>* only, Memory& memory, Decision& decision) {
  feasible_.clear();
  reason_counts_.assign(reason_counts_.size(), 0);
  rejected_ = 0;
  if (only) {
    for (std::string_view name : *only) {
      const auto it = snapshot.slots.find(std::string(name));
      if (it != snapshot.slots.end()) Visit(state, pod, snapshot, it->second, memory, decision);
    }
  } else {
    const size_t slots = snapshot.nodes.size();
    const size_t enough = EnoughNodes(snapshot.count(), percentage_);
    size_t slot = slots == 0 ? 0 : next_start_ % slots;
    for (size_t i = 0; i < slots && feasible_.size() < enough; ++i) {
      Visit(state, pod, snapshot, slot, memory, decision);
      if (++slot == slots) slot = 0;
    }
    next_start_ = slot;
  }
  decision.feasible = feasible_.size();
  if (!feasible_.empty()) return;
  for (size_t i = 0; i < reason_counts_.size(); ++i) {
    if (reason_counts_[i] > 0) decision.diagnosis.reasons[static_cast<uint16_t>(i)] = reason_counts_[i];
  }
  for (size_t i = 0; i < framework_.filters().size(); ++i) {
    if (rejected_ & (1u << i)) decision.diagnosis.rejected_by.push_back(framework_.filters()[i]->name());
  }
}

size_t Algorithm::Best(const CycleState& state, const PodInfo& pod, const Snapshot& snapshot,
                       Memory& memory) {
  if (feasible_.size() == 1) return feasible_[0];
  const std::vector<ScorePlugin*>& scores = framework_.scores();
  for (size_t slot : feasible_) {
    Cached& cached = memory.nodes[slot];
    if (cached.scored) continue;
    for (size_t i = 0; i < scores.size(); ++i) {
      cached.scores[i] = static_cast<int32_t>(scores[i]->Score(state, pod, snapshot.nodes[slot]));
    }
    cached.scored = true;
  }
  totals_.assign(feasible_.size(), 0);
  column_.resize(feasible_.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < feasible_.size(); ++j) column_[j] = memory.nodes[feasible_[j]].scores[i];
    scores[i]->Normalize(column_);
    const int64_t weight = scores[i]->weight();
    for (size_t j = 0; j < feasible_.size(); ++j) totals_[j] += column_[j] * weight;
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

Decision Algorithm::Schedule(CycleState& state, const PodInfo& pod, const Snapshot& snapshot) {
  Decision decision;
  decision.diagnosis.node_count = snapshot.count();
  std::optional<std::vector<std::string_view>> only;
  for (PreFilterPlugin* plugin : framework_.pre_filters()) {
    PreFilterPlugin::Outcome outcome = plugin->PreFilter(state, pod);
    if (!outcome.reason.empty()) {
      decision.diagnosis.prefilter = std::move(outcome.reason);
      decision.diagnosis.rejected_by.push_back(plugin->name());
      return decision;
    }
    if (!outcome.nodes) continue;
    if (!only) {
      only = std::move(outcome.nodes);
    } else {
      std::erase_if(*only, [&](std::string_view name) {
        return std::find(outcome.nodes->begin(), outcome.nodes->end(), name) == outcome.nodes->end();
      });
    }
  }
  Memory& memory = MemoryOf(pod, snapshot.nodes.size());
  FindFeasible(state, pod, snapshot, only ? &*only : nullptr, memory, decision);
  if (feasible_.empty()) {
    if (only && decision.evaluated == 0 && snapshot.count() > 0) {
      decision.diagnosis.prefilter = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
      decision.diagnosis.rejected_by.push_back("NodeAffinity");
    }
    for (PostFilterPlugin* plugin : framework_.post_filters()) {
      decision.diagnosis.postfilter += plugin->PostFilter(state, pod, snapshot).message;
    }
    return decision;
  }
  decision.node = snapshot.nodes[Best(state, pod, snapshot, memory)].facts->name;
  return decision;
}

}  // namespace keelson::scheduler
