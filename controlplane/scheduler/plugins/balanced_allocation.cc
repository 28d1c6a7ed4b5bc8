#include <algorithm>
#include <cmath>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/plugins/resource_usage.h"

namespace keelson::scheduler {

namespace {

// Of shares in use, which are not empty.
double StandardDeviation(const double* shares, size_t count) {
  if (count == 2) return std::abs(shares[0] - shares[1]) / 2;
  double mean = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) mean += shares[i] / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) sum += (shares[i] - mean) * (shares[i] - mean);
  return std::sqrt(sum / static_cast<double>(count));
}

class BalancedAllocation : public ScorePlugin {
 public:
  BalancedAllocation(NameIds& names, const std::vector<ResourceWeight>& weights)
      : resources_(Scored(weights, names)) {
    shares_.resize(resources_.size());
  }
  std::string_view name() const override { return "NodeResourcesBalancedAllocation"; }

  // A pod that asks for nothing would be drawn to one node after the other.
  Status PreScore(CycleState&, const PodInfo& pod, const Snapshot&, std::span<const uint32_t>) override {
    return pod.shape->best_effort && pod.requests.scalar_resources.empty() &&
                   pod.requests.ephemeral_storage == 0
               ? Status::Skip()
               : Status();
  }
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    // Where the pod makes the use of resources more equal is better than where it leaves it as it is, and
    // that is better than where it makes it less so.
    const int64_t with = Balance(pod, node, true), without = Balance(pod, node, false);
    return kMaxNodeScore / 2 + (kMaxNodeScore / 2 + with - without) / 2;
  }

 private:
  // From 50 to 100: how equal the shares in use are, with the pod or without it.
  int64_t Balance(const PodInfo& pod, const NodeInfo& node, bool with) {
    size_t count = 0;
    for (const ScoredResource& resource : resources_) {
      const ScoredResource::Usage usage = resource.Of(pod, node, false);
      if (usage.capacity == 0) continue;
      const int64_t used = with ? usage.requested : usage.requested - usage.by_pod;
      shares_[count++] = std::min(1.0, static_cast<double>(used) / static_cast<double>(usage.capacity));
    }
    const double deviation = count < 2 ? 0 : StandardDeviation(shares_.data(), count);
    return static_cast<int64_t>((1 - deviation) * static_cast<double>(kMaxNodeScore));
  }

  const std::vector<ScoredResource> resources_;
  std::vector<double> shares_;  // scratch
};

}  // namespace

std::unique_ptr<Plugin> NewBalancedAllocation(NameIds& resources, std::vector<ResourceWeight> weights) {
  return std::make_unique<BalancedAllocation>(resources, weights);
}

}  // namespace keelson::scheduler
