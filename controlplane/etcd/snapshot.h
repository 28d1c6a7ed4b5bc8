// Backups of etcd. A snapshot is etcd's database file followed by its SHA-256, like etcdctl's.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "controlplane/etcd/client.h"

namespace keelson::etcd {

struct SnapshotInfo {
  int64_t bytes = 0;
};

// Writes a snapshot of a running etcd. `path` gets a complete and verified snapshot, or stays as it was.
Result<SnapshotInfo> SaveSnapshot(const ClientOptions& options, const std::string& path,
                                  std::stop_token stop);
// kInvalid: not a snapshot, truncated, or modified.
Result<SnapshotInfo> CheckSnapshot(const std::string& path);
// Hash, revision, number of keys and size, as JSON. Runs etcdutl or etcdctl.
Result<std::string> DescribeSnapshot(const std::string& path);
// Makes DATA_DIR/data, from which a Supervisor can start, out of a snapshot. Runs etcdutl or etcdctl.
// DATA_DIR/data must not exist: this never deletes data.
Result<> RestoreSnapshot(const std::string& path, const std::string& data_dir);

}  // namespace keelson::etcd
