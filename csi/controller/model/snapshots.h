// The objects of snapshot.storage.k8s.io/v1 (kubernetes-csi/external-snapshotter): VolumeSnapshot, VolumeSnapshotContent
// and VolumeSnapshotClass. They are custom resources: these structs hold what the controllers read, and the setters change
// an object without touching the rest of it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "csi/controller/model/wire.h"
#include "lib/api/proto/custom_object.pb.h"
#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

using api::custom::CustomObject;

inline constexpr char kSnapshotGroup[] = "snapshot.storage.k8s.io";
// Rows for lib/client's CustomClient and CustomInformers.
const api::ResourceInfo& SnapshotRow();
const api::ResourceInfo& SnapshotContentRow();
const api::ResourceInfo& SnapshotClassRow();

struct SnapshotError {
  std::string time, message;  // RFC 3339
  bool operator==(const SnapshotError&) const = default;
};

struct SnapshotStatus {
  std::optional<std::string> bound_content;  // boundVolumeSnapshotContentName
  std::optional<std::string> creation_time;  // RFC 3339
  std::optional<std::string> restore_size;   // a quantity
  std::optional<bool> ready;                 // readyToUse
  std::optional<SnapshotError> error;
  bool operator==(const SnapshotStatus&) const = default;
};

struct Snapshot {
  metav1::ObjectMeta meta;
  std::optional<std::string> claim, content;  // spec.source: exactly one is set
  std::optional<std::string> class_name;
  std::optional<SnapshotStatus> status;

  std::string Key() const { return meta.namespace_() + "/" + meta.name(); }
  bool IsReady() const { return status && status->ready.value_or(false); }
};

struct ContentStatus {
  std::optional<std::string> handle;     // snapshotHandle
  std::optional<std::string> group;      // volumeGroupSnapshotHandle: a member of a group snapshot
  std::optional<int64_t> creation_time;  // ns since 1970
  std::optional<int64_t> restore_size;   // bytes
  std::optional<bool> ready;
  std::optional<SnapshotError> error;
  bool operator==(const ContentStatus&) const = default;
};

struct SnapshotContent {
  metav1::ObjectMeta meta;
  std::string driver, deletion_policy;                        // Delete, Retain
  std::optional<std::string> volume_handle, snapshot_handle;  // spec.source: exactly one is set
  std::optional<std::string> class_name;
  std::string source_volume_mode;                        // empty: unknown
  std::string snapshot_ns, snapshot_name, snapshot_uid;  // volumeSnapshotRef
  std::optional<ContentStatus> status;

  bool IsReady() const { return status && status->ready.value_or(false); }
  std::string SnapshotKey() const { return snapshot_ns + "/" + snapshot_name; }
};

struct SnapshotClass {
  metav1::ObjectMeta meta;
  std::string driver, deletion_policy;
  Strings parameters;
};

// Members of a wrong type count as absent: the definitions' schemas refuse them. kBadRequest: the object nests too deep.
Result<Snapshot> ReadSnapshot(const CustomObject& object);
Result<SnapshotContent> ReadSnapshotContent(const CustomObject& object);
Result<SnapshotClass> ReadSnapshotClass(const CustomObject& object);

Result<> SetStatus(const SnapshotStatus& status, CustomObject& snapshot);
Result<> SetStatus(const ContentStatus& status, CustomObject& content);
Result<> SetClassName(const std::string& name, CustomObject& snapshot_or_content);
// spec.volumeSnapshotRef.uid.
Result<> SetSnapshotUid(const std::string& uid, CustomObject& content);
// spec and metadata, for a new object.
CustomObject NewSnapshotContent(const SnapshotContent& content);

// For events.
corev1::ObjectReference ReferenceTo(const api::ResourceInfo& row, const metav1::ObjectMeta& meta);

}  // namespace keelson::csi::controller
