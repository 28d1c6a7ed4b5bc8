#include "kubelet/cm/cpu/cpu_assignment.h"

#include <algorithm>
#include <cmath>

namespace keelson::kubelet {

namespace {

using Level = int CpuPlace::*;

class Picker {
 public:
  Picker(const MachineTopology& machine, const CpuSet& available, int count)
      : machine_(machine), free_(available), left_(count) {}

  int left() const { return left_; }
  const CpuSet& taken() const { return taken_; }

  // All parts of a level that are wholly free and not too large.
  void TakeWhole(Level level) {
    for (int id : level == &CpuPlace::core ? Cores() : Ordered(level, free_)) {
      CpuSet part = machine_.Of(level, id);
      if (part.size() <= left_ && free_.ContainsAll(part)) Take(part);
    }
  }

  // The rest out of one shared cache, if one has enough.
  void TakeFromOneCache() {
    for (int id : Ordered(&CpuPlace::cache, free_)) {
      CpuSet part = machine_.Of(&CpuPlace::cache, id).Intersection(free_);
      if (part.size() < left_) continue;
      Picker inside(machine_, part, left_);
      inside.TakeWhole(&CpuPlace::core);
      inside.TakeSingle();
      Take(inside.taken());
      return;
    }
  }

  void TakeSingle() {
    for (int core : Cores()) {
      for (int cpu : machine_.Of(&CpuPlace::core, core).Intersection(free_)) {
        if (left_ > 0) Take(CpuSet{cpu});
      }
    }
  }

  // One CPU of each core, then a second one of each, ...
  void TakeSpread() {
    while (left_ > 0 && !free_.empty()) {
      for (int core : Cores()) {
        if (CpuSet part = machine_.Of(&CpuPlace::core, core).Intersection(free_);
            left_ > 0 && !part.empty()) {
          Take(CpuSet{*part.begin()});
        }
      }
    }
  }

 private:
  void Take(const CpuSet& cpus) {
    taken_.Add(cpus);
    free_ = free_.Minus(cpus);
    left_ -= cpus.size();
  }

  // Those with the fewest free CPUs first, so that little is broken up.
  std::vector<int> Ordered(Level level, const CpuSet& among) const {
    std::map<int, int> free;
    for (int cpu : among) ++free[machine_.cpus.at(cpu).*level];
    std::vector<int> ids;
    for (const auto& [id, count] : free) ids.push_back(id);
    std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return free[a] < free[b]; });
    return ids;
  }

  std::vector<int> Cores() const {
    std::vector<int> out;
    for (int socket : Ordered(&CpuPlace::socket, free_)) {
      CpuSet in_socket = machine_.Of(&CpuPlace::socket, socket).Intersection(free_);
      for (int numa : Ordered(&CpuPlace::numa, in_socket)) {
        CpuSet in_node = machine_.Of(&CpuPlace::numa, numa).Intersection(in_socket);
        for (int core : Ordered(&CpuPlace::core, in_node)) {
          if (std::find(out.begin(), out.end(), core) == out.end()) out.push_back(core);
        }
      }
    }
    return out;
  }

  const MachineTopology& machine_;
  CpuSet free_, taken_;
  int left_;
};

CpuSet Packed(const MachineTopology& machine, const CpuSet& available, int count,
              const CpuAssignOptions& options) {
  Picker picker(machine, available, count);
  // The wider of the two first.
  bool nodes_first = machine.Sockets() >= static_cast<int>(machine.nodes.size());
  picker.TakeWhole(nodes_first ? &CpuPlace::numa : &CpuPlace::socket);
  picker.TakeWhole(nodes_first ? &CpuPlace::socket : &CpuPlace::numa);
  if (options.align_cache && picker.left() > 0) {
    picker.TakeWhole(&CpuPlace::cache);
    if (picker.left() > 0) picker.TakeFromOneCache();
  }
  if (options.spread_cores) {
    picker.TakeSpread();
  } else {
    picker.TakeWhole(&CpuPlace::core);
    picker.TakeSingle();
  }
  return picker.taken();
}

// How uneven what is left in the machine's nodes is.
double Unevenness(const std::vector<int>& left) {
  double mean = 0, squares = 0;
  for (int count : left) mean += count / static_cast<double>(left.size());
  for (int count : left) squares += (count - mean) * (count - mean);
  return std::sqrt(squares / static_cast<double>(left.size()));
}

// How many CPUs each node of `mask` gives, or nothing if one has too few.
std::optional<std::map<int, int>> Deal(const std::map<int, int>& free, const NumaMask& mask, int count,
                                       int group) {
  int nodes = static_cast<int>(mask.count());
  int each = count / nodes / group * group;
  std::map<int, int> out;
  for (const auto& [id, available] : free) {
    if (!mask.test(id)) continue;
    if (available < each || each == 0) return std::nullopt;
    out[id] = each;
  }
  if (static_cast<int>(out.size()) != nodes) return std::nullopt;
  for (int rest = count - each * nodes; rest > 0;) {
    int step = std::min(rest, group), best = -1;
    for (const auto& [id, given] : out) {
      if (free.at(id) - given >= step && (best < 0 || free.at(id) - given > free.at(best) - out[best])) {
        best = id;
      }
    }
    if (best < 0) return std::nullopt;
    out[best] += step;
    rest -= step;
  }
  return out;
}

// Evenly over as few NUMA nodes as have enough; among equals the choice that leaves the machine most even.
std::optional<CpuSet> Distributed(const MachineTopology& machine, const CpuSet& available, int count,
                                  const CpuAssignOptions& options) {
  std::map<int, int> free;
  for (const auto& [id, node] : machine.nodes) free[id] = node.cpus.Intersection(available).size();
  int group = options.whole_cores ? machine.CpusPerCore() : 1;
  std::optional<std::map<int, int>> best;
  double best_score = 0;
  size_t size = 0;
  for (const NumaMask& mask : machine.NodeSets()) {
    if (best && mask.count() > size) break;
    auto dealt = Deal(free, mask, count, group);
    if (!dealt) continue;
    std::vector<int> left;
    for (const auto& [id, amount] : free) left.push_back(amount - (dealt->count(id) ? dealt->at(id) : 0));
    double score = Unevenness(left);
    if (best && score >= best_score) continue;
    best = std::move(dealt);
    best_score = score;
    size = mask.count();
  }
  if (!best) return std::nullopt;
  CpuSet out;
  for (const auto& [id, amount] : *best) {
    out.Add(Packed(machine, machine.nodes.at(id).cpus.Intersection(available), amount, options));
  }
  return out;
}

}  // namespace

Result<CpuSet> AssignCpus(const MachineTopology& machine, const CpuSet& available, int count,
                          const CpuAssignOptions& options) {
  if (available.size() < count) {
    return Error(Code::kConflict,
                 "not enough cpus available to satisfy request: requested=" + std::to_string(count) +
                     ", available=" + std::to_string(available.size()));
  }
  if (options.distribute_numa) {
    if (auto cpus = Distributed(machine, available, count, options)) return *cpus;
  }
  return Packed(machine, available, count, options);
}

}  // namespace keelson::kubelet
