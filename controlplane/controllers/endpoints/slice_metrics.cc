#include "controlplane/controllers/endpoints/slice_metrics.h"

#include "lib/base/metrics.h"

namespace keelson::controllers {
namespace {

// A value that upstream knows, or what it says of others; empty: the Service says nothing.
std::string DistributionOf(const corev1::Service& service) {
  const std::string& value = service.spec().traffic_distribution();
  if (value.empty() || value == "PreferClose" || value == "PreferSameZone" || value == "PreferSameNode")
    return value;
  return "ImplementationSpecific";
}

metrics::Histogram& PerSync(const char* name, const char* help) {
  return metrics::Histograms(name, help, metrics::ExponentialBuckets(2, 2, 15)).HistogramWith();
}

}  // namespace

void CountSliceSync(const corev1::Service& service, const SlicePlan& plan, const Result<>& applied) {
  static metrics::Family& changes =
      metrics::Counter("endpoint_slice_controller_changes", "Number of EndpointSlice changes", {"operation"});
  static metrics::Family& syncs =
      metrics::Counter("endpoint_slice_controller_syncs", "Number of EndpointSlice syncs", {"result"});
  static metrics::Family& changed =
      metrics::Histograms("endpoint_slice_controller_endpointslices_changed_per_sync",
                          "Number of EndpointSlices changed on each Service sync",
                          {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},  // as upstream has them
                          {"topology", "traffic_distribution"});
  static metrics::Histogram& added = PerSync("endpoint_slice_controller_endpoints_added_per_sync",
                                             "Number of endpoints added on each Service sync");
  static metrics::Histogram& removed = PerSync("endpoint_slice_controller_endpoints_removed_per_sync",
                                               "Number of endpoints removed on each Service sync");
  const bool stale = !applied && applied.error().Is(Code::kConflict);
  syncs.With({applied ? "success" : stale ? "stale" : "error"}).Increment();
  if (!applied) return;
  changes.With({"create"}).Add(static_cast<double>(plan.create.size()));
  changes.With({"update"}).Add(static_cast<double>(plan.update.size()));
  changes.With({"delete"}).Add(static_cast<double>(plan.remove.size()));
  const bool topology = HintModeOf(service) == HintMode::kTopology;
  changed.HistogramWith({topology ? "Auto" : "Disabled", topology ? "" : DistributionOf(service)})
      .Observe(static_cast<double>(plan.create.size() + plan.update.size() + plan.remove.size()));
  added.Observe(static_cast<double>(plan.added));
  removed.Observe(static_cast<double>(plan.removed));
}

void SliceTotals::Set(const std::string& key, const corev1::Service& service, const SlicePlan& plan,
                      size_t existing) {
  const One now{plan.endpoints, existing + plan.create.size() - plan.remove.size(), plan.ideal_slices,
                DistributionOf(service)};
  MutexLock lock(mutex_);
  One& one = of_[key];
  Move(one, now);
  one = now;
}

void SliceTotals::Forget(const std::string& key) {
  MutexLock lock(mutex_);
  auto it = of_.find(key);
  if (it == of_.end()) return;
  Move(it->second, {});
  of_.erase(it);
}

void SliceTotals::Move(const One& from, const One& to) {
  static metrics::Value& endpoints =
      metrics::Gauge("endpoint_slice_controller_endpoints_desired", "Number of endpoints desired").With();
  static metrics::Value& slices =
      metrics::Gauge("endpoint_slice_controller_num_endpoint_slices", "Number of EndpointSlices").With();
  static metrics::Value& ideal =
      metrics::Gauge("endpoint_slice_controller_desired_endpoint_slices",
                     "Number of EndpointSlices that would exist with perfect endpoint allocation")
          .With();
  static metrics::Family& services =
      metrics::Gauge("endpoint_slice_controller_services_count_by_traffic_distribution",
                     "Number of Services using some specific trafficDistribution", {"traffic_distribution"});
  auto by = [](size_t before, size_t after) {
    return static_cast<double>(after) - static_cast<double>(before);
  };
  endpoints.Add(by(from.endpoints, to.endpoints));
  slices.Add(by(from.slices, to.slices));
  ideal.Add(by(from.ideal, to.ideal));
  if (!from.distribution.empty()) services.With({from.distribution}).Add(-1);
  if (!to.distribution.empty()) services.With({to.distribution}).Add(1);
}

}  // namespace keelson::controllers
