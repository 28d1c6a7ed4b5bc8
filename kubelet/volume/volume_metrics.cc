#include "kubelet/volume/volume_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

void CountStorageOperation(const std::string& plugin, const char* operation, bool good, double seconds) {
  static metrics::Family& duration =
      metrics::Histograms("storage_operation_duration_seconds", "Storage operation duration",
                          {.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
                          {"volume_plugin", "operation_name", "status", "migrated"});
  duration.HistogramWith({plugin, operation, good ? "success" : "fail-unknown", "false"}).Observe(seconds);
}

void TellVolumes(const std::vector<PodVolume>& volumes) {
  metrics::Family& family = metrics::Gauge("volume_manager_total_volumes",
                                           "Number of volumes in Volume Manager", {"plugin_name", "state"});
  family.Clear();
  for (const PodVolume& volume : volumes) {
    family.With({volume.plugin, "desired_state_of_world"}).Increment();
    if (!volume.path.empty()) family.With({volume.plugin, "actual_state_of_world"}).Increment();
  }
}

}  // namespace keelson::kubelet
