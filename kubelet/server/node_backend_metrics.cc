// What /metrics tells that is counted when it is asked for.
#include "kubelet/server/node_backend.h"
#include "kubelet/stats/directory_usage.h"
#include "kubelet/volume/volume_metrics.h"
#include "lib/base/file.h"
#include "lib/base/mutex.h"
#include "lib/metrics/metrics.h"

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
  metrics::Family& health =
      metrics::Gauge("kubelet_volume_stats_health_status_abnormal",
                     "Abnormal volume health status. The count is either 1 or 0. 1 indicates the volume is "
                     "unhealthy, 0 indicates volume is healthy",
                     {"namespace", "persistentvolumeclaim"});
  for (const Gauge& gauge : kGauges) family(gauge).Clear();
  health.Clear();
  for (const PodVolume& volume : volumes) {
    if (volume.claim.empty() || volume.path.empty() || volume.block ||
        volume.plugin == "kubernetes.io/host-path") {
      continue;
    }
    const std::optional<FsUsage> usage = stats.OfMount(volume.Directory());
    if (!usage) continue;
    for (const Gauge& gauge : kGauges) {
      family(gauge).With({volume.ns, volume.claim}).Set(static_cast<double>((*usage).*gauge.value));
    }
    if (usage->abnormal) health.With({volume.ns, volume.claim}).Set(*usage->abnormal ? 1 : 0);
  }
}

// By whose name a log's directory is; a container that has gone may have left its log.
void SetLogMetrics(const std::vector<PodWorkers::PodPtr>& pods, const Paths& paths) {
  metrics::Family& used = metrics::Gauge("kubelet_container_log_filesystem_used_bytes",
                                         "Bytes used by the container's logs on the filesystem.",
                                         {"uid", "namespace", "pod", "container"});
  used.Clear();
  for (const auto& pod : pods) {
    const metav1::ObjectMeta& meta = pod->metadata();
    const std::string logs = paths.PodLogs(meta.namespace_(), meta.name(), meta.uid());
    auto containers = ListDir(logs);
    if (!containers) continue;
    for (const std::string& container : *containers) {
      used.With({meta.uid(), meta.namespace_(), meta.name(), container})
          .Set(static_cast<double>(UsageOfDirectory(logs + "/" + container).bytes));
    }
  }
}

}  // namespace

Result<std::string> Backend::Metrics() {
  // The families are the process's: who clears one must not do so while another fills it.
  static Mutex one_at_a_time;
  MutexLock lock(one_at_a_time);
  SetPodMetrics(workers_.CountPods());
  const std::vector<PodVolume> volumes = volumes_.volumes().All();
  TellVolumes(volumes);
  TellClaims(volumes, stats_);
  SetLogMetrics(workers_.Pods(), {settings_.flags.root_dir, settings_.config.pod_logs_dir});
  return metrics::Print();
}

}  // namespace keelson::kubelet
