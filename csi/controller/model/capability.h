// How Kubernetes' access modes and volume modes read in CSI. Pure.
#pragma once

#include <string>
#include <vector>

#include "csi/controller/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

struct MountOptions {
  std::string fs_type;
  std::vector<std::string> flags;
};

bool IsBlock(const Claim& claim);
bool IsBlock(const Volume& volume);

// One capability for each access mode of the claim, for CreateVolume. `multi_writer`: the driver has
// SINGLE_NODE_MULTI_WRITER, which tells ReadWriteOncePod from ReadWriteOnce. kInvalid: an unknown mode, or
// ReadWriteOncePod without that.
Result<std::vector<v1::VolumeCapability>> ClaimCapabilities(const Claim& claim, const MountOptions& mount,
                                                            bool multi_writer);
// All access modes of a volume of CSI's in one capability, for calls on a volume that exists. kInvalid: modes that
// CSI has no word for.
Result<v1::VolumeCapability> VolumeCapability(const Volume& volume, bool multi_writer);

}  // namespace keelson::csi::controller
