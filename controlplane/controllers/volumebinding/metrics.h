// Gauges of volumes and claims, with upstream's names.
#pragma once

#include "controlplane/controllers/volumebinding/match.h"

namespace keelson::controllers {

// Call for each change from `before` to `after`. Null: the object does not exist.
void CountVolume(const PersistentVolume* before, const PersistentVolume* after);
void CountClaim(const PersistentVolumeClaim* before, const PersistentVolumeClaim* after);

}  // namespace keelson::controllers
