#include "kubelet/cm/forwarding_cgroups.h"
#include "kubelet/metrics/buckets.h"
#include "kubelet/metrics/measured.h"
#include "kubelet/metrics/stopwatch.h"
#include "lib/base/metrics.h"

namespace keelson::kubelet {

namespace {

template <typename Call>
Result<> Measure(const char* operation, const Call& call) {
  static metrics::Family& duration =
      metrics::Histograms("kubelet_cgroup_manager_duration_seconds",
                          "Duration in seconds for cgroup manager operations. Broken down by method.",
                          DefaultBuckets(), {"operation_type"});
  Stopwatch watch;
  Result<> result = call();
  duration.HistogramWith({operation}).Observe(watch.Seconds());
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
  Result<> UpdateClasses(const std::vector<PodPtr>& pods, const NodeContext& node) override {
    return Measure("update", [&] { return real_.UpdateClasses(pods, node); });
  }
};

}  // namespace

std::unique_ptr<PodCgroups> MeasuredCgroups(PodCgroups& real) { return std::make_unique<Cgroups>(real); }

}  // namespace keelson::kubelet
