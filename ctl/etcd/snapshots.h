// Snapshots of etcd in a directory, and a data directory out of one.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "ctl/etcd/settings.h"
#include "lib/etcd/snapshot.h"

namespace keelson::ctl {

// Takes a snapshot of the first endpoint that answers. kUnavailable: the file system has not room for it.
Result<etcd::SnapshotInfo> SaveEtcdSnapshot(const EtcdAccess& access, const std::string& path);

// Takes one into the directory (mode 0700 when it is made) under a name of its own, and then removes the oldest beyond
// `keep`; 0: none is removed. Returns its path. kConflict: another process does the same just now.
Result<std::string> SaveInDirectory(const EtcdAccess& access, const std::string& directory, size_t keep,
                                    int64_t unix_seconds, std::ostream& out);

struct RestoreWish {
  std::string snapshot;
  std::string directory;  // DIRECTORY/data is etcd's own
  etcd::RestoredMember member;
  bool replace = false;  // a directory that exists, which is kept aside
};
// Makes the data directory. At every moment there is the old one or the new one, so that a kill leaves neither a part nor a
// cluster without data; doing it again ends the work. kConflict: an etcd uses the directory. kAlreadyExists: there is one, and
// `replace` is not set.
Result<> RestoreEtcd(const RestoreWish& wish, int64_t unix_seconds, std::ostream& out);

}  // namespace keelson::ctl
