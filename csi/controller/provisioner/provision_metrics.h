// Metrics of provisioning and deletion, with the names of external-provisioner's library: alerts look for them.
#pragma once

#include "csi/controller/model/wire.h"

namespace keelson::csi::controller {

// One attempt to make a volume for the claim. `seconds` counts only if it has succeeded.
void CountProvisioning(const Claim& claim, bool good, double seconds);
// One attempt to delete the volume.
void CountDeletion(const Volume& volume, bool good, double seconds);

}  // namespace keelson::csi::controller
