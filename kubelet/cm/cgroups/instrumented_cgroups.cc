#include "kubelet/cm/cgroups/instrumented_cgroups.h"

#include "kubelet/cm/cgroups/forwarding_cgroups.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

void Observe(const char* operation, const Stopwatch& watch) {
  static metrics::Family& duration =
      metrics::Histograms("kubelet_cgroup_manager_duration_seconds",
                          "Duration in seconds for cgroup manager operations. Broken down by method.",
                          DefaultBuckets(), {"operation_type"});
  duration.HistogramWith({operation}).Observe(watch.Seconds());
}

template <typename Call>
Result<> Measure(const char* operation, const Call& call) {
  Stopwatch watch;
  Result<> result = call();
  Observe(operation, watch);
  return result;
}

class Cgroups : public ForwardingCgroups {
 public:
  using ForwardingCgroups::ForwardingCgroups;

  Result<> Start(const NodeContext& node) override {
    return Measure("create", [&] { return real_.Start(node); });
  }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    return Measure("create", [&] { return real_.Ensure(pod, node); });
  }
  Result<> Remove(const std::string& uid) override {
    return Measure("destroy", [&] { return real_.Remove(uid); });
  }
  // Asked every other second; what changes nothing is no operation.
  Result<bool> UpdateQosCgroups(const std::vector<PodPtr>& pods, const NodeContext& node) override {
    Stopwatch watch;
    Result<bool> updated = real_.UpdateQosCgroups(pods, node);
    if (!updated || *updated) Observe("update", watch);
    return updated;
  }
};

}  // namespace

std::unique_ptr<PodCgroups> InstrumentedCgroups(PodCgroups& real) { return std::make_unique<Cgroups>(real); }

}  // namespace keelson::kubelet
