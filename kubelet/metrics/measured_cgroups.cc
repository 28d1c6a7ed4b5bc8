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

class Cgroups : public PodCgroups {
 public:
  explicit Cgroups(PodCgroups& real) : real_(real) {}

  Result<> Start(const NodeContext& node) override {
    return Measure("create", [&] { return real_.Start(node); });
  }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    return Measure("create", [&] { return real_.Ensure(pod, node); });
  }
  Result<> Remove(const std::string& uid) override {
    return Measure("destroy", [&] { return real_.Remove(uid); });
  }
  Result<> ShareCpu(int64_t milli) override {
    return Measure("update", [&] { return real_.ShareCpu(milli); });
  }
  std::string Parent(const corev1::Pod& pod) const override { return real_.Parent(pod); }
  std::set<std::string> Uids() const override { return real_.Uids(); }
  linux::CgroupUsage Usage(const corev1::Pod& pod) const override { return real_.Usage(pod); }
  linux::CgroupUsage UsageOfAll() const override { return real_.UsageOfAll(); }
  std::optional<pid_t> AnyProcess(const corev1::Pod& pod) const override { return real_.AnyProcess(pod); }

 private:
  PodCgroups& real_;
};

}  // namespace

std::unique_ptr<PodCgroups> MeasuredCgroups(PodCgroups& real) { return std::make_unique<Cgroups>(real); }

}  // namespace keelson::kubelet
