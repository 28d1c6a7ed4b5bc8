// Backups of etcd. A snapshot is etcd's database file followed by its SHA-256, like etcdctl's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::etcd {

struct SnapshotInfo {
  int64_t bytes = 0;
};

// Streams a snapshot: calls the function with each piece (Member::Snapshot).
using TakeSnapshot = std::function<Result<>(const std::function<Result<>(std::string_view)>& each)>;

// Writes what `take` delivers. `path` gets a complete and verified snapshot, which is on the disk, or stays as it was.
// Meanwhile PATH.part has what has come so far; the next call with this path replaces what a killed one has left.
Result<SnapshotInfo> SaveSnapshot(const std::string& path, const TakeSnapshot& take);
// kInvalid: not a snapshot, truncated, or modified.
Result<SnapshotInfo> CheckSnapshot(const std::string& path);
// Hash, revision, number of keys and size, as JSON: {"hash":1,"revision":2,"totalKey":3,"totalSize":4}. Runs etcdutl or
// etcdctl; kNotFound without either.
Result<std::string> DescribeSnapshot(const std::string& path);

// The member that a restored directory belongs to: etcd keeps it in the data. A cluster of several is restored from one
// snapshot, with the same cluster and token on each machine.
struct RestoredMember {
  std::string name = "default";
  std::string peer_url = "https://127.0.0.1:2380";
  std::string cluster;  // NAME=PEER-URL,...; empty: this member alone
  std::string token;    // empty: etcd's default
};
// Makes the directory `data`, from which etcd can start, out of a snapshot. It must not exist. A kill leaves a part of it.
// Runs etcdutl or etcdctl.
Result<> RestoreSnapshot(const std::string& path, const std::string& data, const RestoredMember& member = {});

}  // namespace keelson::etcd
