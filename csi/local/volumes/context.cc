#include "csi/local/volumes/context.h"

#include "csi/local/host/device.h"
#include "csi/local/host/directory.h"
#include "csi/local/host/filesystem.h"
#include "csi/local/host/project_quota.h"
#include "csi/local/model/condition.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

Result<VolumeRecord> Context::FindVolume(const std::string& id) const {
  if (auto record = store.Volume(id); record && !record->ephemeral) return *record;
  return Error(Code::kNotFound, "volume " + id + " does not exist");
}

std::string Context::EphemeralId(const std::string& volume_id) const {
  // The kubelet's identities are apart from the names of claims' volumes.
  return Id(Kind::kVolume, std::string("ephemeral") + '\0' + volume_id);
}

Result<VolumeRecord> Context::FindOnNode(const std::string& volume_id) const {
  if (auto record = store.Volume(EphemeralId(volume_id)); record && record->ephemeral) return *record;
  return FindVolume(volume_id);
}

Result<SnapshotRecord> Context::FindSnapshot(const std::string& id) const {
  // Members of a group that is being made or removed do not exist.
  const auto record = store.Snapshot(id);
  if (record && (record->group.empty() || store.Group(record->group))) return *record;
  return Error(Code::kNotFound, "snapshot " + id + " does not exist");
}

Result<std::string> Context::Content(const VolumeRecord& record) const {
  if (!record.logical) return store.Image(Kind::kVolume, record.id);
  KEELSON_ASSIGN_OR_RETURN(const std::string device, logical.Device(record.id));
  return RealDevice(device);
}

Result<Use> Context::UseOfVolume(const std::string& id) const {
  const auto record = store.Volume(id);
  if (record && record->logical) {
    auto volume = logical.Find(id);
    if (!volume && volume.error().Is(Code::kNotFound)) return Use{};  // lost
    if (!volume) return volume.error();
    if (!volume->active) return Use{};
    KEELSON_ASSIGN_OR_RETURN(const std::string device, RealDevice(volume->device));
    return FindDeviceUse(device);
  }
  if (record && record->directory) return FindDirectoryUse(store.Directory(Kind::kVolume, id));
  return FindUse(store.Image(Kind::kVolume, id));
}

TemporaryImage::~TemporaryImage() {
  if (path_.empty()) return;
  if (auto removed = RemoveTree(path_); !removed) {
    log::Error("Cannot remove an image that is not complete", {{"err", removed.error()}});
  }
}

Result<> TemporaryImage::MoveTo(const std::string& place) {
  KEELSON_RETURN_IF_ERROR(RenameForGood(path_, place));
  path_.clear();
  return {};
}

v1::Volume DescribeVolume(const Context& context, const VolumeRecord& record) {
  v1::Volume volume;
  volume.set_volume_id(record.id);
  volume.set_capacity_bytes(record.capacity);
  if (!record.source_snapshot.empty()) {
    volume.mutable_content_source()->mutable_snapshot()->set_snapshot_id(record.source_snapshot);
  }
  if (!record.source_volume.empty()) {
    volume.mutable_content_source()->mutable_volume()->set_volume_id(record.source_volume);
  }
  (*volume.add_accessible_topology()->mutable_segments())[context.config.TopologyKey()] =
      context.config.node_id;
  return volume;
}

v1::Snapshot DescribeSnapshot(const SnapshotRecord& record) {
  constexpr int64_t kNanos = 1'000'000'000;
  v1::Snapshot snapshot;
  snapshot.set_snapshot_id(record.id);
  snapshot.set_source_volume_id(record.source_volume);
  snapshot.set_size_bytes(record.size);
  snapshot.mutable_creation_time()->set_seconds(record.created / kNanos);
  snapshot.mutable_creation_time()->set_nanos(static_cast<int32_t>(record.created % kNanos));
  snapshot.set_ready_to_use(true);
  snapshot.set_group_snapshot_id(record.group);
  return snapshot;
}

namespace {

Health HealthOfLogical(const VolumeRecord& record, const LogicalSurvey& survey) {
  Health health;
  if (const LogicalVolume* volume = survey.Find(record.id)) {
    health.size = volume->size;
    health.taken = volume->Taken();
  }
  if (survey.pool) health.free = survey.pool->free;
  return health;
}

Health HealthOf(const Context& context, const VolumeRecord& record, const LogicalSurvey* survey) {
  if (record.logical) return HealthOfLogical(record, survey ? *survey : context.logical.Survey());
  const auto disk = UsageOf(context.store.directory());
  Health health;
  if (record.directory) {
    if (PathExists(context.store.Directory(Kind::kVolume, record.id))) health.size = record.capacity;
    const auto use = ProjectUseOf(context.store.directory(), record.project);
    if (record.project != 0 && use) health.taken = use->used;
  } else if (const auto image = SizeOf(context.store.Image(Kind::kVolume, record.id))) {
    health.size = image->size;
    health.taken = image->taken;
  }
  if (disk) health.free = disk->available;
  return health;
}

}  // namespace

v1::VolumeCondition ConditionOf(const Context& context, const VolumeRecord& record,
                                const LogicalSurvey* survey) {
  const std::string complaint = Complaint(record, HealthOf(context, record, survey));
  v1::VolumeCondition condition;
  condition.set_abnormal(!complaint.empty());
  condition.set_message(complaint.empty() ? "the volume is in order" : complaint);
  return condition;
}

}  // namespace keelson::csi::local
