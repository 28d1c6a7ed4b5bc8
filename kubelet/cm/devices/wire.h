// Converts devices and grants from protobuf.
#pragma once

#include <string>
#include <string_view>

#include "kubelet/cm/devices/device.h"
#include "lib/base/error.h"

namespace v1beta1 {
class ContainerAllocateResponse;
class ListAndWatchResponse;
}  // namespace v1beta1

namespace keelson::kubelet::devices {

DeviceMap FromWire(const v1beta1::ListAndWatchResponse& in);
Grant FromWire(const v1beta1::ContainerAllocateResponse& in);
// A serialized ContainerAllocateResponse, as in checkpoints.
std::string GrantToBytes(const Grant& grant);
Result<Grant> GrantFromBytes(std::string_view bytes);

}  // namespace keelson::kubelet::devices
