// What the driver remembers of volumes, snapshots and groups: one JSON document each. Whatever the kernel knows (loop
// devices, mounts) is not in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::csi::local {

struct VolumeRecord {
  std::string id, name;
  int64_t capacity = 0;    // bytes
  bool thick = false;      // all of its space is reserved
  bool directory = false;  // a tree of files, not an image
  int64_t project = 0;     // of a directory's quota; 0: its capacity is not held
  // Where its content comes from: at most one of them.
  std::string source_snapshot, source_volume;
  bool logical = false;    // a logical volume, not an image
  bool ephemeral = false;  // an inline volume, which is deleted when it is unpublished
  std::string target;      // where an inline volume is published
};

struct SnapshotRecord {
  std::string id, name;
  std::string source_volume;
  int64_t size = 0;     // bytes: the least capacity of a volume made from it
  int64_t created = 0;  // nanoseconds since 1970
  std::string group;    // empty: of none
  bool directory = false, logical = false;
};

// The parameter `type`: file, directory, lvm.
template <typename Record>
const char* TypeOf(const Record& record) {
  return record.directory ? "directory" : record.logical ? "lvm" : "file";
}

struct GroupRecord {
  std::string id, name;
  std::vector<std::string> snapshots, source_volumes;  // sorted by source volume, in the same order
  int64_t created = 0;
};

std::string ToJson(const VolumeRecord& record);
std::string ToJson(const SnapshotRecord& record);
std::string ToJson(const GroupRecord& record);
// kInternal: not such a document, of another version, or of another identity than `id`.
Result<> FromJson(std::string_view text, const std::string& id, VolumeRecord& out);
Result<> FromJson(std::string_view text, const std::string& id, SnapshotRecord& out);
Result<> FromJson(std::string_view text, const std::string& id, GroupRecord& out);

}  // namespace keelson::csi::local
