// Copies of content: for snapshots, restores and clones. A volume in use is frozen meanwhile, so that the copy is what a
// clean unmount would leave.
#pragma once

#include <string>
#include <vector>

#include "csi/local/volumes/context.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

struct CopyRequest {
  bool own = false;  // share no blocks: the copy's space is to be its own
  std::string to;    // a new file
};

// The caller holds locks of source and destination. kConflict: a device in use on a file system that cannot share blocks,
// where a copy would not be of one instant.
Result<> CopyVolume(const Context& context, const std::string& id, const CopyRequest& request);
Result<> CopySnapshot(const Context& context, const std::string& id, const CopyRequest& request);

// Holds up all writers of volumes until it is destroyed. Marks in the data directory say so, for the next process if this
// one is killed.
class Frozen {
 public:
  explicit Frozen(const Context& context) : context_(context) {}
  ~Frozen();
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  // Nothing to do for a volume that is not mounted; writes out what a device in use has pending.
  Result<> Freeze(const std::string& id);
  // Whether this volume may still change.
  bool IsLive(const std::string& id) const;
  // Whether its file system is frozen.
  bool Holds(const std::string& id) const;

 private:
  struct One {
    std::string id, mounted_at;
  };
  const Context& context_;
  std::vector<One> frozen_;
  std::vector<std::string> live_;
};
// Copies one of the volumes that have been frozen.
Result<> CopyFrozen(const Context& context, const Frozen& frozen, const VolumeRecord& volume,
                    const CopyRequest& request);

// Thaws what a killed driver has frozen. At start, before anything else.
Result<> ThawRemains(const Context& context);

}  // namespace keelson::csi::local
