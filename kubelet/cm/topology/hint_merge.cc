#include "kubelet/cm/topology/hint_merge.h"

#include <algorithm>
#include <optional>

namespace keelson::kubelet {

namespace {

using HintList = std::vector<TopologyHint>;

// One list a resource; what has no preference goes anywhere, what cannot be met makes nothing preferred.
std::vector<HintList> Flatten(const std::vector<TopologyHints>& providers, TopologyPolicy policy) {
  std::vector<HintList> out;
  for (const TopologyHints& hints : providers) {
    for (const auto& [resource, list] : hints) {
      HintList kept;
      for (const TopologyHint& hint : list) {
        bool single = hint.preferred && (!hint.nodes || hint.nodes->count() == 1);
        if (policy != TopologyPolicy::kSingleNumaNode || single) kept.push_back(hint);
      }
      if (kept.empty()) kept.push_back({std::nullopt, false});
      out.push_back(std::move(kept));
    }
  }
  return out;
}

struct Candidate {
  NumaMask nodes;
  bool preferred = false;
};

class Merger {
 public:
  Merger(const MachineTopology& machine, const MergeOptions& options, std::vector<HintList> lists)
      : machine_(machine), options_(options), lists_(std::move(lists)) {
    for (const auto& [id, node] : machine.nodes) all_.set(id);
    for (const HintList& list : lists_) {
      size_t least = all_.count();
      for (const TopologyHint& hint : list) {
        if (hint.nodes) least = std::min(least, hint.nodes->count());
      }
      bool any =
          std::any_of(list.begin(), list.end(), [](const auto& hint) { return hint.nodes.has_value(); });
      if (any) needed_ = std::max(needed_, least);
    }
  }

  Candidate Best() {
    Descend(0, {all_, true}, std::nullopt);
    return best_.value_or(Candidate{all_, false});
  }
  const NumaMask& all() const { return all_; }

 private:
  // `first`: the first set of nodes on the way; a combination is preferred only if all sets are the same.
  void Descend(size_t index, Candidate so_far, std::optional<NumaMask> first) {
    if (so_far.nodes.none()) return;
    if (index == lists_.size()) {
      if (!best_ || Better(so_far, *best_)) best_ = so_far;
      return;
    }
    for (const TopologyHint& hint : lists_[index]) {
      Candidate next{so_far.nodes, so_far.preferred && hint.preferred};
      std::optional<NumaMask> set = first;
      if (hint.nodes) {
        next.nodes &= *hint.nodes;
        if (first && *first != *hint.nodes) next.preferred = false;
        if (!set) set = hint.nodes;
      }
      Descend(index + 1, next, set);
    }
  }

  double MeanDistance(const NumaMask& mask) const {
    double sum = 0;
    int pairs = 0;
    for (const auto& [from, node] : machine_.nodes) {
      if (!mask.test(from)) continue;
      for (const auto& [to, distance] : node.distance) {
        if (!mask.test(to)) continue;
        sum += distance;
        ++pairs;
      }
    }
    return pairs ? sum / pairs : 0;
  }

  bool Narrower(const NumaMask& a, const NumaMask& b) const {
    if (a.count() != b.count()) return a.count() < b.count();
    if (options_.prefer_closest) {
      double da = MeanDistance(a), db = MeanDistance(b);
      if (da != db) return da < db;
    }
    return a.to_ullong() < b.to_ullong();
  }

  bool Better(const Candidate& a, const Candidate& b) const {
    if (a.preferred != b.preferred) return a.preferred;
    size_t na = a.nodes.count(), nb = b.nodes.count();
    if (a.preferred || na == nb) return Narrower(a.nodes, b.nodes);
    if (nb > needed_) return na < nb;
    return na > nb && na <= needed_;  // too few nodes would starve the most demanding resource
  }

  const MachineTopology& machine_;
  const MergeOptions& options_;
  const std::vector<HintList> lists_;
  NumaMask all_;
  size_t needed_ = 1;
  std::optional<Candidate> best_;
};

}  // namespace

MergedHint MergeHints(const std::vector<TopologyHints>& providers, const MachineTopology& machine,
                      const MergeOptions& options) {
  if (options.policy == TopologyPolicy::kNone) return {};
  Merger merger(machine, options, Flatten(providers, options.policy));
  Candidate best = merger.Best();
  MergedHint out;
  out.hint = {best.nodes, best.preferred};
  if (options.policy == TopologyPolicy::kSingleNumaNode && best.nodes == merger.all()) out.hint.nodes.reset();
  out.admit = options.policy == TopologyPolicy::kBestEffort || best.preferred;
  return out;
}

}  // namespace keelson::kubelet
