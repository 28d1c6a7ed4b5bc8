// Of pods that nobody asks for: kubelet_orphaned_runtime_pods_total, kubelet_orphan_pod_cleaned_volumes.
#pragma once

namespace keelson::kubelet {

void CountOrphan();  // found in the runtime
// Directories of pods that the last look over them has removed, or could not.
void TellSweep(int cleaned, int failed);

}  // namespace keelson::kubelet
