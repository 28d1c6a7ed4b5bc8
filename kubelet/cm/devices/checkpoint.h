// The device manager's checkpoint: which container has which devices, and which resources were registered.
//
//   <root>/device-plugins/kubelet_internal_checkpoint
//   {"Data":{"PodDeviceEntries":[{"PodUID":"...","ContainerName":"...","ResourceName":"example.com/gpu",
//            "DeviceIDs":{"0":["gpu-1"]},"AllocResp":"<base64 of a ContainerAllocateResponse>"}, ...],
//            "RegisteredDevices":{"example.com/gpu":["gpu-0","gpu-1"]}}}
//
// DeviceIDs are by NUMA node, -1: none. The field names are upstream's, so that a node can change its kubelet while
// pods run; upstream's checksum is ignored.
#pragma once

#include "kubelet/cm/devices/pod_devices.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

struct Checkpoint {
  PodDevices pods;
  Ids resources;  // names
};

std::string EncodeCheckpoint(const PodDevices& pods, const std::map<std::string, Ids>& healthy_devices);
// kInvalid: malformed.
Result<Checkpoint> DecodeCheckpoint(std::string_view text);

}  // namespace keelson::kubelet::devices
