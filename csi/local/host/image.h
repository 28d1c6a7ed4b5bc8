// Files that hold the content of volumes and snapshots. All of it survives a crash: what a call has reported is on the
// disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/base/error.h"

namespace keelson::csi::local {

struct ImageSize {
  int64_t size = 0;   // what the volume sees
  int64_t taken = 0;  // blocks of the disk, those shared with other files too
};
Result<ImageSize> SizeOf(const std::string& path);

// A new file of zeros. `thick` reserves its blocks. kAlreadyExists: the file exists. kConflict: the file system cannot
// reserve.
Result<> MakeImage(const std::string& path, int64_t size, bool thick);
// At least `size` bytes, all of them reserved if `thick`. Never makes a file smaller. Idempotent.
Result<> GrowImage(const std::string& path, int64_t size, bool thick);

enum class Copying {
  kShared,  // one instant's content, in shared blocks (FICLONE), or not at all
  kAny,     // shared blocks, else a copy without the holes; nothing may write meanwhile
  kOwn,     // a copy without the holes; nothing may write meanwhile
};
// Copies to a new file. kConflict: the file system does not share blocks, and `copying` asks for that.
// kTooManyRequests: no room for a copy. kCancelled: `stopped` said so. After an error the new file is incomplete.
Result<> CopyImage(const std::string& from, const std::string& to, Copying copying,
                   const std::function<bool()>& stopped);

// Whether every byte is zero. Reads what is no hole.
Result<bool> IsZeros(const std::string& path);

// rename(2), and fsync of the directories of both names. Replaces an old file.
Result<> RenameForGood(const std::string& from, const std::string& to);
// Also absent, it is gone for good.
Result<> RemoveForGood(const std::string& path);

}  // namespace keelson::csi::local
