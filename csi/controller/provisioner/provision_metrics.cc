#include "csi/controller/provisioner/provision_metrics.h"

#include <vector>

#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

// Prometheus' default buckets.
const std::vector<double>& Seconds() {
  static const std::vector<double> bounds{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
  return bounds;
}

}  // namespace

void CountProvisioning(const Claim& claim, bool good, double seconds) {
  static metrics::Family& made = metrics::Counter(
      "controller_persistentvolumeclaim_provision_total",
      "Volumes made for claims, by class and kind of the claim's data source.", {"class", "source"});
  static metrics::Family& failed = metrics::Counter(
      "controller_persistentvolumeclaim_provision_failed_total",
      "Failed attempts to make a volume, by class and kind of the claim's data source.", {"class", "source"});
  static metrics::Family& took = metrics::Histograms(
      "controller_persistentvolumeclaim_provision_duration_seconds",
      "Seconds that making a volume took, where it succeeded, by class and kind of the claim's data source.",
      Seconds(), {"class", "source"});
  const std::vector<std::string> of{claim.spec().storage_class_name(), claim.spec().data_source().kind()};
  if (!good) {
    failed.With(of).Increment();
    return;
  }
  made.With(of).Increment();
  took.HistogramWith(of).Observe(seconds);
}

void CountDeletion(const Volume& volume, bool good, double seconds) {
  static metrics::Family& deleted =
      metrics::Counter("controller_persistentvolume_delete_total", "Volumes deleted, by class.", {"class"});
  static metrics::Family& failed =
      metrics::Counter("controller_persistentvolume_delete_failed_total",
                       "Failed attempts to delete a volume, by class.", {"class"});
  static metrics::Family& took = metrics::Histograms(
      "controller_persistentvolume_delete_duration_seconds",
      "Seconds that deleting a volume took, where it succeeded, by class.", Seconds(), {"class"});
  const std::vector<std::string> of{volume.spec().storage_class_name()};
  if (!good) {
    failed.With(of).Increment();
    return;
  }
  deleted.With(of).Increment();
  took.HistogramWith(of).Observe(seconds);
}

}  // namespace keelson::csi::controller
