#include "controlplane/controllers/endpoints/slice_metrics.h"

#include "controlplane/controllers/common/metrics.h"

namespace keelson::controllers {
namespace {

// A value that upstream knows, or upstream's label for other values; empty: not set.
std::string DistributionOf(const corev1::Service& service) {
  const std::string& value = service.spec().traffic_distribution();
  if (value.empty() || value == "PreferClose" || value == "PreferSameZone" || value == "PreferSameNode") {
    return value;
  }
  return "ImplementationSpecific";
}

}  // namespace

void CountSliceSync(const corev1::Service& service, const SlicePlan& plan, const Result<>& applied) {
  static metrics::Family& changes = TheMetrics().endpoint_slice_changes;
  static metrics::Family& syncs = TheMetrics().endpoint_slice_syncs;
  static metrics::Family& changed = TheMetrics().endpoint_slice_endpointslices_changed_per_sync;
  static metrics::Histogram& added = TheMetrics().endpoint_slice_endpoints_added_per_sync.HistogramWith();
  static metrics::Histogram& removed = TheMetrics().endpoint_slice_endpoints_removed_per_sync.HistogramWith();
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
  static metrics::Value& endpoints = TheMetrics().endpoint_slice_endpoints_desired.With();
  static metrics::Value& slices = TheMetrics().endpoint_slice_num_endpoint_slices.With();
  static metrics::Value& ideal = TheMetrics().endpoint_slice_desired_endpoint_slices.With();
  static metrics::Family& services = TheMetrics().endpoint_slice_services_count_by_traffic_distribution;
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
