// Volumes and snapshots of type lvm: thin volumes of LVM, named as their identities. The data directory has their records,
// as of all others. Tags carry what a killed driver was about to do:
//
//   keelson.csi.local/DRIVER/NODE    the volume is this driver's; without it nothing is changed
//   keelson.csi.local/incomplete     there may be no record; without one the next driver removes the volume
//   keelson.csi.local/formatting     mkfs may not have ended, and nobody has used the volume
//
// So a data directory that is lost loses no data: volumes without record and mark stay.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csi/local/host/lvm.h"
#include "csi/local/model/config.h"
#include "csi/local/model/wire.h"
#include "csi/local/store/store.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::csi::local {

// All of them at one time, in two commands of LVM.
struct LogicalSurvey {
  std::vector<LogicalVolume> volumes;  // own ones; empty: or they cannot be read
  std::optional<ThinPool> pool;        // nullopt: it cannot be read

  const LogicalVolume* Find(const std::string& id) const;
};

// Thread safe. Callers hold the lock of what they change (volumes/locks.h). All but configured(): kConflict where the driver
// has no thin pool.
class LogicalVolumes {
 public:
  LogicalVolumes(const Config& config, Store& store);

  bool configured() const { return lvm_ != nullptr; }
  // At start: checks the pool, and removes what a killed driver left. Nothing to do without a pool.
  Result<> Recover();

  // What a new volume may have at most.
  Result<int64_t> Available() const;
  Result<ThinPool> Pool() const;
  // Makes volume and record. `source`: the identity of what is copied, empty: nothing. kTooManyRequests: no room.
  Result<> Create(const VolumeRecord& record, const std::string& source);
  Result<> Snapshot(const SnapshotRecord& record);
  // Record and volume; success if both are absent.
  Result<> Remove(Kind kind, const std::string& id);
  // kTooManyRequests: no room.
  Result<> Grow(const VolumeRecord& record);

  // The device, which is there when this returns.
  Result<std::string> Device(const std::string& id) const;
  LogicalSurvey Survey() const;
  // kNotFound, kConflict: as Lvm::Volume.
  Result<LogicalVolume> Find(const std::string& id) const;
  // mkfs on a volume that holds nothing, or that an earlier mkfs has not finished. kConflict: something was written to it.
  Result<> Format(const std::string& id, const std::string& type) const;
  // Whether an mkfs has not ended.
  Result<bool> IsHalfFormatted(const std::string& id) const;

 private:
  Result<> CheckConfigured() const;
  Result<int64_t> AvailableLocked() const KEELSON_REQUIRES(mutex_);
  Result<> Reserve(int64_t bytes) const KEELSON_REQUIRES(mutex_);
  Result<> CheckMetadata() const;
  Result<> RemoveRemains(const std::string& id) const;
  Result<> RemoveHalfGroups();
  template <typename Record>
  Result<> Complete(const Record& record) KEELSON_REQUIRES(mutex_);

  const Config& config_;
  Store& store_;
  const std::unique_ptr<Lvm> lvm_;
  mutable Mutex mutex_;  // of what takes space
};

}  // namespace keelson::csi::local
