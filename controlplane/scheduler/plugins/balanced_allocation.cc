#include <algorithm>
#include <cmath>

#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

double Fraction(int64_t requested, int64_t capacity) {
  if (capacity == 0) return 1;
  return std::min(1.0, static_cast<double>(requested) / static_cast<double>(capacity));
}

class BalancedAllocation : public ScorePlugin {
 public:
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }

  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    const double cpu = Fraction(node.used.milli_cpu + pod.requests.milli_cpu, node.allocatable.milli_cpu);
    const double memory = Fraction(node.used.memory + pod.requests.memory, node.allocatable.memory);
    // The standard deviation of two values.
    return static_cast<int64_t>((1 - std::abs(cpu - memory) / 2) * static_cast<double>(kMax));
  }
  bool MayHelp(const ClusterEvent&, const PodInfo&) const override { return false; }
};

}  // namespace

std::unique_ptr<Plugin> NewBalancedAllocation() { return std::make_unique<BalancedAllocation>(); }

}  // namespace keelson::scheduler
