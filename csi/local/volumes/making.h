// How volumes come and go: content and record.
#pragma once

#include <optional>
#include <string>

#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// What a volume's content is copied from.
struct Source {
  std::optional<Locks::Held> lock;
  Kind kind = Kind::kSnapshot;
  std::string id;  // empty: nothing is copied
  int64_t size = 0;
  std::string type;  // TypeOf()
};

// Capacities are multiples of it: logical volumes have the extents of their group.
Result<int64_t> BlockOf(const Context& context, const VolumeRecord& record);

// The caller of each holds the volume's lock.

// kTooManyRequests: no room.
Result<> MakeVolume(Context& context, VolumeRecord& record, const Source& source = {});
// Success if there is none. kConflict: it is mounted.
Result<> RemoveVolume(Context& context, const std::string& id);

}  // namespace keelson::csi::local
