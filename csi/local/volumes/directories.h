// Volumes of type directory: a tree on the data directory's own file system, bound where it is used. A project quota holds
// its capacity; without one there is no such volume, unless --directory-quotas=false says that none is wanted.
#pragma once

#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// The caller of each holds the volume's lock, and the source's.

// A new directory in the volume's place, with what is in the directory `source` (empty: nothing). Sets record.project.
// kConflict: there are no quotas, or all projects are taken.
Result<> CreateDirectoryVolume(const Context& context, VolumeRecord& record, const std::string& source);
// Copies to the place of the snapshot. kConflict: the volume is in use, and a copy would not be of one instant.
Result<> SnapshotDirectory(const Context& context, const VolumeRecord& volume, const std::string& snapshot);
// Where the content of a volume is that is to be copied. kConflict as above.
Result<std::string> IdleDirectory(const Context& context, const VolumeRecord& volume);

// The quota's limit is the capacity, also on a file system that has lost it. kConflict: quotas are off now.
Result<> HoldCapacity(const Context& context, const VolumeRecord& record);
// Forgets the quota of a volume that is about to be removed.
Result<> ReleaseCapacity(const Context& context, const VolumeRecord& record);

}  // namespace keelson::csi::local
