#include <algorithm>

#include "csi/local/volumes/content.h"
#include "csi/local/volumes/directories.h"
#include "csi/local/volumes/snapshot_calls.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

bool IsSnapshotToken(const std::string& token) { return IsId(Kind::kSnapshot, token); }

int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Result<> SnapshotImage(const Context& context, const std::string& volume, const std::string& snapshot) {
  TemporaryImage image(context.store.Temporary(snapshot));
  KEELSON_RETURN_IF_ERROR(RemoveForGood(image.path()));
  KEELSON_RETURN_IF_ERROR(CopyVolume(context, volume, {.to = image.path()}));
  return image.MoveTo(context.store.Image(Kind::kSnapshot, snapshot));
}

}  // namespace

Result<> RemoveSnapshot(Context& context, const std::string& id) {
  const auto record = context.store.Snapshot(id);
  // Without a record there may be what an earlier call could not remove.
  const bool logical = record ? record->logical : context.logical.configured();
  if (logical) KEELSON_RETURN_IF_ERROR(context.logical.Remove(Kind::kSnapshot, id));
  return record && record->logical ? Result<>() : context.store.Remove(Kind::kSnapshot, id);
}

Result<> SnapshotCalls::Create(const v1::CreateSnapshotRequest& request, v1::CreateSnapshotResponse& reply) {
  KEELSON_RETURN_IF_ERROR(CheckName(request.name()));
  KEELSON_RETURN_IF_ERROR(CheckId(request.source_volume_id(), "source_volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckSnapshotParameters(request.parameters()));
  SnapshotRecord record;
  record.id = context_.Id(Kind::kSnapshot, request.name());
  record.name = request.name();
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(record.id));
  if (auto found = context_.store.Snapshot(record.id)) {
    if (found->source_volume != request.source_volume_id()) {
      return Error(Code::kAlreadyExists, "snapshot \"" + record.name + "\" exists of another volume");
    }
    *reply.mutable_snapshot() = DescribeSnapshot(*found);
    return {};
  }
  KEELSON_ASSIGN_OR_RETURN(Locks::Held source_lock, context_.locks.Exclusive(request.source_volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord source, context_.FindVolume(request.source_volume_id()));
  record.source_volume = source.id;
  record.size = source.capacity;
  record.directory = source.directory;
  record.logical = source.logical;
  record.created = Nanoseconds(context_.clock.Now());
  if (source.logical) {
    KEELSON_RETURN_IF_ERROR(context_.logical.Snapshot(record));
  } else {
    KEELSON_RETURN_IF_ERROR(context_.store.Remove(Kind::kSnapshot, record.id));
    KEELSON_RETURN_IF_ERROR(source.directory ? SnapshotDirectory(context_, source, record.id)
                                             : SnapshotImage(context_, source.id, record.id));
    KEELSON_RETURN_IF_ERROR(context_.store.Put(record));
  }
  log::Info("Snapshot created", {{"id", record.id}, {"name", record.name}, {"volume", source.id}});
  *reply.mutable_snapshot() = DescribeSnapshot(record);
  return {};
}

Result<> SnapshotCalls::Delete(const v1::DeleteSnapshotRequest& request) {
  const std::string& id = request.snapshot_id();
  KEELSON_RETURN_IF_ERROR(CheckId(id, "snapshot_id"));
  if (!IsId(Kind::kSnapshot, id)) return {};
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(id));
  const auto record = context_.store.Snapshot(id);
  if (record && !record->group.empty()) {
    return Error(Code::kInvalid, "snapshot " + id + " is deleted with its group " + record->group);
  }
  KEELSON_RETURN_IF_ERROR(RemoveSnapshot(context_, id));
  if (record) log::Info("Snapshot deleted", {{"id", id}});
  return {};
}

Result<> SnapshotCalls::List(const v1::ListSnapshotsRequest& request,
                             v1::ListSnapshotsResponse& reply) const {
  std::vector<SnapshotRecord> records = context_.store.Snapshots();
  std::erase_if(records, [&](const SnapshotRecord& record) {
    // Members of a group that is being made or removed do not exist.
    return (!request.snapshot_id().empty() && record.id != request.snapshot_id()) ||
           (!request.source_volume_id().empty() && record.source_volume != request.source_volume_id()) ||
           (!record.group.empty() && !context_.store.Group(record.group));
  });
  std::vector<std::string> ids;
  for (const SnapshotRecord& record : records) ids.push_back(record.id);
  KEELSON_ASSIGN_OR_RETURN(Page page,
                           MakePage(ids, request.max_entries(), request.starting_token(), IsSnapshotToken));
  for (size_t i = page.begin; i < page.end; ++i) {
    *reply.add_entries()->mutable_snapshot() = DescribeSnapshot(records[i]);
  }
  reply.set_next_token(page.next_token);
  return {};
}

Result<> SnapshotCalls::Get(const v1::GetSnapshotRequest& request, v1::GetSnapshotResponse& reply) const {
  KEELSON_RETURN_IF_ERROR(CheckId(request.snapshot_id(), "snapshot_id"));
  KEELSON_ASSIGN_OR_RETURN(SnapshotRecord record, context_.FindSnapshot(request.snapshot_id()));
  *reply.mutable_snapshot() = DescribeSnapshot(record);
  return {};
}

}  // namespace keelson::csi::local
