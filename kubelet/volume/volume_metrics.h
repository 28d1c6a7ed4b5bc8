// Metrics of volumes: storage_operation_duration_seconds and volume_manager_total_volumes.
#pragma once

#include <string>
#include <vector>

#include "kubelet/volume/pod_volumes.h"

namespace keelson::kubelet {

// `operation`: volume_mount, volume_unmount, ...
void CountStorageOperation(const std::string& plugin, const char* operation, bool good, double seconds);
void TellVolumes(const std::vector<PodVolume>& volumes);

}  // namespace keelson::kubelet
