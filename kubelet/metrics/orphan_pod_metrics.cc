#include "kubelet/metrics/orphan_pod_metrics.h"

#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

metrics::Value& Found() {
  static metrics::Value& value =
      metrics::Counter(
          "kubelet_orphaned_runtime_pods_total",
          "Number of pods that have been detected in the container runtime without being already "
          "known to the pod worker. This typically indicates the kubelet was restarted while a pod "
          "was force deleted in the API or in the local configuration, which is unusual.")
          .With();
  return value;
}

}  // namespace

void CountOrphanedRuntimePod() { Found().Increment(); }

void SetOrphanPodCleanedVolumes(int cleaned, int failed) {
  Found();  // there from the first sweep on
  metrics::Gauge("kubelet_orphan_pod_cleaned_volumes",
                 "The total number of orphaned Pods whose volumes were cleaned in the last periodic sweep.")
      .With()
      .Set(cleaned);
  metrics::Gauge("kubelet_orphan_pod_cleaned_volumes_errors",
                 "The number of orphaned Pods whose volumes failed to be cleaned in the last periodic sweep.")
      .With()
      .Set(failed);
}

}  // namespace keelson::kubelet
