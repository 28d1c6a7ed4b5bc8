// Backups of etcd. A snapshot is its database file with the file's SHA-256 after it, as etcdctl makes them.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "controlplane/etcd/client.h"

namespace keelson::etcd {

struct SnapshotInfo {
  int64_t bytes = 0;
};

// Writes a snapshot of a running etcd. `path` is complete and checked, or as it was.
Result<SnapshotInfo> SaveSnapshot(const ClientOptions& options, const std::string& path,
                                  std::stop_token stop);
// kInvalid: no snapshot, cut off, or altered.
Result<SnapshotInfo> CheckSnapshot(const std::string& path);
// Its hash, revision, number of keys and size, as JSON. Asks etcdutl or etcdctl.
Result<std::string> DescribeSnapshot(const std::string& path);
// Makes DATA_DIR/data, which a Supervisor starts from, of a snapshot. By etcdutl or etcdctl. DATA_DIR/data
// must not exist: what is there is nobody's to throw away.
Result<> RestoreSnapshot(const std::string& path, const std::string& data_dir);

}  // namespace keelson::etcd
