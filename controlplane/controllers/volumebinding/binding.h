// Binds a claim and a volume to each other, in four writes of which each may be the last of this process:
// the volume names the claim, the volume is Bound, the claim names the volume, the claim is Bound. Who finds
// a binding half done goes on with it.
#pragma once

#include <string>

#include "controlplane/controllers/common/latest_writes.h"
#include "controlplane/controllers/volumebinding/match.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Writes nothing that is as it should be. `claims` notes what was written of the claim.
Result<> Bind(const client::RestClient& api, PersistentVolume volume, PersistentVolumeClaim claim,
              LatestWrites& claims);

// The claim has gone elsewhere. A volume that the binder had chosen is free again, one that its maker had
// meant for the claim waits for the next of that name.
Result<> Unbind(const client::RestClient& api, PersistentVolume volume);

// Writes the phase when it is another. True: it was.
Result<bool> SetPhase(const client::RestClient& api, PersistentVolume& volume, const std::string& phase,
                      const std::string& message = "");
// A claim without a volume has neither modes nor capacity.
Result<bool> SetUnboundPhase(const client::RestClient& api, PersistentVolumeClaim& claim,
                             const std::string& phase, LatestWrites& claims);

}  // namespace keelson::controllers
