#include "controlplane/controllers/volumebinding/metrics.h"

#include "controlplane/controllers/common/metrics.h"

namespace keelson::controllers {
namespace {

// The in-tree plugin names as upstream labels them; "N/A": no plugin any more.
std::string PluginOf(const PersistentVolume& volume) {
  const auto& source = volume.spec().persistent_volume_source();
  if (source.has_csi()) return "kubernetes.io/csi:" + source.csi().driver();
  if (source.has_host_path()) return "kubernetes.io/host-path";
  if (source.has_local()) return "kubernetes.io/local-volume";
  if (source.has_nfs()) return "kubernetes.io/nfs";
  if (source.has_iscsi()) return "kubernetes.io/iscsi";
  if (source.has_fc()) return "kubernetes.io/fc";
  return "N/A";
}

void AddVolume(const PersistentVolume& volume, int by) {
  static metrics::Family& bound = TheMetrics().pv_collector_bound_pv_count;
  static metrics::Family& unbound = TheMetrics().pv_collector_unbound_pv_count;
  static metrics::Family& total = TheMetrics().pv_collector_total_pv_count;
  (volume.status().phase() == "Bound" ? bound : unbound).With({ClassOf(volume)}).Add(by);
  total.With({PluginOf(volume), volume.spec().volume_mode() == "Block" ? "Block" : "Filesystem"}).Add(by);
}

void AddClaim(const PersistentVolumeClaim& claim, int by) {
  static metrics::Family& bound = TheMetrics().pv_collector_bound_pvc_count;
  static metrics::Family& unbound = TheMetrics().pv_collector_unbound_pvc_count;
  (claim.status().phase() == "Bound" ? bound : unbound)
      .With({claim.metadata().namespace_(), ClassOf(claim), claim.spec().volume_attributes_class_name()})
      .Add(by);
}

}  // namespace

void CountVolume(const PersistentVolume* before, const PersistentVolume* after) {
  if (before) AddVolume(*before, -1);
  if (after) AddVolume(*after, 1);
}

void CountClaim(const PersistentVolumeClaim* before, const PersistentVolumeClaim* after) {
  if (before) AddClaim(*before, -1);
  if (after) AddClaim(*after, 1);
}

}  // namespace keelson::controllers
