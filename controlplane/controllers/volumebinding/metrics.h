// How many volumes and claims there are, by upstream's names.
#pragma once

#include "controlplane/controllers/volumebinding/match.h"

namespace keelson::controllers {

// One that was `before` is `after` now. Null: not there.
void CountVolume(const PersistentVolume* before, const PersistentVolume* after);
void CountClaim(const PersistentVolumeClaim* before, const PersistentVolumeClaim* after);

}  // namespace keelson::controllers
