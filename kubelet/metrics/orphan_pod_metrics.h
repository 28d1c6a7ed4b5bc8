// Metrics of pods that no source knows: kubelet_orphaned_runtime_pods_total, kubelet_orphan_pod_cleaned_volumes.
#pragma once

namespace keelson::kubelet {

// Such a pod was found in the runtime.
void CountOrphanedRuntimePod();
// How many orphaned pod directories the last cleanup removed, and how many it could not remove.
void SetOrphanPodCleanedVolumes(int cleaned, int failed);

}  // namespace keelson::kubelet
