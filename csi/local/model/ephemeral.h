// Ephemeral inline volumes (KEP-596): a volume of one pod, which NodePublishVolume makes and NodeUnpublishVolume deletes. The
// kubelet marks it in volume_context, beside the attributes of the pod's spec. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "csi/local/model/requests.h"
#include "csi/local/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

struct EphemeralVolume {
  Parameters parameters;
  int64_t capacity = 0;  // bytes
};

// Whether the context is one of an inline volume.
bool IsEphemeral(const Strings& context);
// Whether the identity has the form that kubelets give to inline volumes. Of a volume that is deleted already nothing else is
// left to know it by.
bool IsEphemeralId(const std::string& id);
// What the pod asks for: `size` (a quantity; 1 GiB without) and the parameters of a class. kInvalid: another attribute, a size
// that is none, or a device. kGone: no volume has this size.
Result<EphemeralVolume> ParseEphemeral(const Strings& context, const v1::VolumeCapability& capability);

}  // namespace keelson::csi::local
