// Binds a claim and a volume in four writes: the volume's claimRef, the volume's phase, the claim's
// volumeName, the claim's phase. The process may be killed after any of them; the next sync continues a
// half-done binding.
#pragma once

#include <string>

#include "controlplane/controllers/common/consistency_store.h"
#include "controlplane/controllers/volumebinding/match.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Skips writes that would change nothing. Records writes of the claim in `claims`.
Result<> Bind(const client::RestClient& api, PersistentVolume volume, PersistentVolumeClaim claim,
              ConsistencyStore& claims);

// Unbinds a volume from a claim that bound elsewhere. A volume that the binder chose becomes free; a
// pre-bound volume keeps its claimRef without the UID.
Result<> Unbind(const client::RestClient& api, PersistentVolume volume);

// Writes the phase if it differs. Returns whether it did.
Result<bool> SetPhase(const client::RestClient& api, PersistentVolume& volume, const std::string& phase,
                      const std::string& message = "");
// Writes the phase of a claim without a volume, and clears its access modes and capacity.
Result<bool> SetUnboundPhase(const client::RestClient& api, PersistentVolumeClaim& claim,
                             const std::string& phase, ConsistencyStore& claims);

}  // namespace keelson::controllers
