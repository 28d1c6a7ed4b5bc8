// What /metrics tells that is counted when it is asked for.
#include "kubelet/backend.h"
#include "kubelet/volume/volume_metrics.h"
#include "lib/base/metrics.h"

namespace keelson::kubelet {

namespace {

// Of claims whose volumes are file systems of their own.
void TellClaims(const std::vector<PodVolume>& volumes, StatsProvider& stats) {
  struct Gauge {
    const char *name, *help;
    uint64_t FsUsage::*value;
  };
  static constexpr Gauge kGauges[] = {
      {"kubelet_volume_stats_capacity_bytes", "Capacity in bytes of the volume", &FsUsage::capacity},
      {"kubelet_volume_stats_available_bytes", "Number of available bytes in the volume",
       &FsUsage::available},
      {"kubelet_volume_stats_used_bytes", "Number of used bytes in the volume", &FsUsage::used},
      {"kubelet_volume_stats_inodes", "Maximum number of inodes in the volume", &FsUsage::inodes},
      {"kubelet_volume_stats_inodes_free", "Number of free inodes in the volume", &FsUsage::inodes_free},
      {"kubelet_volume_stats_inodes_used", "Number of used inodes in the volume", &FsUsage::inodes_used}};
  auto family = [](const Gauge& gauge) -> metrics::Family& {
    return metrics::Gauge(gauge.name, gauge.help, {"namespace", "persistentvolumeclaim"});
  };
  for (const Gauge& gauge : kGauges) family(gauge).Clear();
  for (const PodVolume& volume : volumes) {
    if (volume.claim.empty() || volume.path.empty() || volume.plugin == "kubernetes.io/host-path") continue;
    const std::optional<FsUsage> usage = stats.OfMount(volume.path);
    if (!usage) continue;
    for (const Gauge& gauge : kGauges)
      family(gauge).With({volume.ns, volume.claim}).Set(static_cast<double>((*usage).*gauge.value));
  }
}

}  // namespace

Result<std::string> Backend::Metrics() {
  Tell(workers_.Census());
  const std::vector<PodVolume> volumes = volumes_.volumes().All();
  TellVolumes(volumes);
  TellClaims(volumes, stats_);
  return metrics::Print();
}

}  // namespace keelson::kubelet
