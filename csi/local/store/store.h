// The data directory:
//
//   lock                        held by the one driver that uses the directory
//   volumes/ID.json, ID.img     record and content of a volume
//   volumes/ID.json, ID.dir     of a volume that is a directory
//   snapshots/ID.json, ID.img   of a snapshot; or ID.dir
//   groups/ID.json              record of a group of snapshots
//   frozen/ID                   the volume's file system may be frozen
//   tmp/                        contents that are not complete
//
// A record is what makes a thing exist. Content comes into its place before the record is written, and goes after the
// record is removed; so content without a record is what a killed driver left, and Open() removes it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csi/local/model/ids.h"
#include "csi/local/model/records.h"
#include "lib/base/error.h"
#include "lib/base/fd.h"
#include "lib/base/mutex.h"

namespace keelson::csi::local {

// Thread safe. Callers hold the lock of what they change (volumes/locks.h).
class Store {
 public:
  // Makes the directory, reads all records and cleans up. kConflict: another driver uses the directory. kInternal: a
  // record is damaged; a volume could be lost if the driver went on.
  static Result<std::unique_ptr<Store>> Open(const std::string& directory);

  std::optional<VolumeRecord> Volume(const std::string& id) const;
  std::optional<SnapshotRecord> Snapshot(const std::string& id) const;
  std::optional<GroupRecord> Group(const std::string& id) const;
  std::vector<VolumeRecord> Volumes() const;  // by identity
  std::vector<SnapshotRecord> Snapshots() const;

  // On the disk when they return.
  Result<> Put(const VolumeRecord& record);
  Result<> Put(const SnapshotRecord& record);
  Result<> Put(const GroupRecord& record);
  Result<> Remove(Kind kind, const std::string& id);  // record, then content; success if both are absent

  const std::string& directory() const { return directory_; }
  std::string Image(Kind kind, const std::string& id) const;
  std::string Directory(Kind kind, const std::string& id) const;
  std::string Temporary(const std::string& id) const;  // a path for content of this identity
  std::string TemporaryDirectory(const std::string& id) const;
  std::string FrozenMark(const std::string& id) const;
  Result<std::vector<std::string>> FrozenMarks() const;  // identities

 private:
  Store(std::string directory, UniqueFd lock) : directory_(std::move(directory)), lock_(std::move(lock)) {}
  std::string RecordPath(Kind kind, const std::string& id) const;
  Result<> Load();
  Result<> RemoveRemains();
  Result<> RemoveRemainsOf(Kind kind);
  Result<> RemoveHalfGroups();

  const std::string directory_;
  const UniqueFd lock_;
  mutable Mutex mutex_;
  std::map<std::string, VolumeRecord> volumes_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, SnapshotRecord> snapshots_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, GroupRecord> groups_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::csi::local
