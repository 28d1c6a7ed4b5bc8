// The snapshots of a group, taken at one instant.
#pragma once

#include <vector>

#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Contents and records of all members, in the order of `volumes`, whose locks the caller holds: files and logical volumes.
// Sets group.created. After a failure some members may be there. kConflict: writers of a volume cannot be held up: of a
// device in use, or, where LVM has to do it beside others, before Linux 6.8.
Result<> TakeMembers(Context& context, const std::vector<VolumeRecord>& volumes, GroupRecord& group);

}  // namespace keelson::csi::local
