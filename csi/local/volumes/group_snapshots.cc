#include <algorithm>
#include <set>

#include "csi/local/volumes/group_members.h"
#include "csi/local/volumes/snapshot_calls.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

// A member's name: no other caller can choose it, since names of snapshots have no NUL before a volume's identity.
std::string MemberName(const std::string& group, const std::string& volume) {
  return group + std::string(1, '\0') + volume;
}

Result<v1::VolumeGroupSnapshot> Describe(const Store& store, const GroupRecord& record) {
  constexpr int64_t kNanos = 1'000'000'000;
  v1::VolumeGroupSnapshot group;
  group.set_group_snapshot_id(record.id);
  group.mutable_creation_time()->set_seconds(record.created / kNanos);
  group.mutable_creation_time()->set_nanos(static_cast<int32_t>(record.created % kNanos));
  group.set_ready_to_use(true);
  for (const std::string& id : record.snapshots) {
    auto snapshot = store.Snapshot(id);
    if (!snapshot) return Error(Code::kInternal, "snapshot " + id + " of group " + record.id + " is lost");
    *group.add_snapshots() = DescribeSnapshot(*snapshot);
  }
  return group;
}

// The caller may name the members; then they have to be these.
Result<> CheckMembers(const GroupRecord& record,
                      const google::protobuf::RepeatedPtrField<std::string>& named) {
  const std::set<std::string> own(record.snapshots.begin(), record.snapshots.end());
  if (named.empty() || std::set<std::string>(named.begin(), named.end()) == own) return {};
  return Error(Code::kInvalid, "snapshot_ids are not those of group " + record.id);
}

Result<std::vector<std::string>> SortedSources(const v1::CreateVolumeGroupSnapshotRequest& request) {
  if (request.source_volume_ids().empty()) return Error(Code::kInvalid, "source_volume_ids is required");
  std::vector<std::string> ids(request.source_volume_ids().begin(), request.source_volume_ids().end());
  for (const std::string& id : ids) KEELSON_RETURN_IF_ERROR(CheckId(id, "source_volume_ids"));
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end()) {
    return Error(Code::kInvalid, "source_volume_ids names a volume twice");
  }
  return ids;
}

Result<> RemoveMembers(Context& context, const std::vector<std::string>& snapshots) {
  for (const std::string& id : snapshots) KEELSON_RETURN_IF_ERROR(RemoveSnapshot(context, id));
  return {};
}

}  // namespace

Result<> SnapshotCalls::CreateGroup(const v1::CreateVolumeGroupSnapshotRequest& request,
                                    v1::CreateVolumeGroupSnapshotResponse& reply) {
  KEELSON_RETURN_IF_ERROR(CheckName(request.name()));
  KEELSON_ASSIGN_OR_RETURN(auto sources, SortedSources(request));
  KEELSON_RETURN_IF_ERROR(CheckSnapshotParameters(request.parameters()));
  GroupRecord group;
  group.id = context_.Id(Kind::kGroup, request.name());
  group.name = request.name();
  group.source_volumes = sources;
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(group.id));
  if (auto found = context_.store.Group(group.id)) {
    if (found->source_volumes != sources) {
      return Error(Code::kAlreadyExists, "group snapshot \"" + group.name + "\" exists of other volumes");
    }
    KEELSON_ASSIGN_OR_RETURN(*reply.mutable_group_snapshot(), Describe(context_.store, *found));
    return {};
  }
  std::vector<Locks::Held> source_locks;
  std::vector<VolumeRecord> volumes;
  for (const std::string& id : sources) {
    KEELSON_ASSIGN_OR_RETURN(Locks::Held held, context_.locks.Exclusive(id));
    source_locks.push_back(std::move(held));
    KEELSON_ASSIGN_OR_RETURN(VolumeRecord volume, context_.FindVolume(id));
    if (volume.directory) {
      return Error(Code::kInvalid, "volume " + id + " is of type directory, which cannot be frozen");
    }
    volumes.push_back(std::move(volume));
    group.snapshots.push_back(context_.Id(Kind::kSnapshot, MemberName(group.id, id)));
  }
  KEELSON_RETURN_IF_ERROR(RemoveMembers(context_, group.snapshots));
  if (auto taken = TakeMembers(context_, volumes, group); !taken) {
    // Without the group they do not exist; what stays, the next attempt or the next driver removes.
    if (auto removed = RemoveMembers(context_, group.snapshots); !removed) {
      log::Warn("Cannot remove snapshots of a group that failed",
                {{"id", group.id}, {"err", removed.error()}});
    }
    return taken;
  }
  KEELSON_RETURN_IF_ERROR(context_.store.Put(group));
  log::Info("Group snapshot created", {{"id", group.id}, {"name", group.name}, {"volumes", volumes.size()}});
  KEELSON_ASSIGN_OR_RETURN(*reply.mutable_group_snapshot(), Describe(context_.store, group));
  return {};
}

Result<> SnapshotCalls::DeleteGroup(const v1::DeleteVolumeGroupSnapshotRequest& request) {
  const std::string& id = request.group_snapshot_id();
  KEELSON_RETURN_IF_ERROR(CheckId(id, "group_snapshot_id"));
  if (!IsId(Kind::kGroup, id)) return {};
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(id));
  std::vector<std::string> members;
  if (auto record = context_.store.Group(id)) {
    KEELSON_RETURN_IF_ERROR(CheckMembers(*record, request.snapshot_ids()));
    members = record->snapshots;
  } else {
    // What an earlier call could not remove.
    for (const SnapshotRecord& snapshot : context_.store.Snapshots()) {
      if (snapshot.group == id) members.push_back(snapshot.id);
    }
  }
  std::vector<Locks::Held> held;
  for (const std::string& member : members) {
    KEELSON_ASSIGN_OR_RETURN(Locks::Held one, context_.locks.Exclusive(member));
    held.push_back(std::move(one));
  }
  KEELSON_RETURN_IF_ERROR(context_.store.Remove(Kind::kGroup, id));
  return RemoveMembers(context_, members);
}

Result<> SnapshotCalls::GetGroup(const v1::GetVolumeGroupSnapshotRequest& request,
                                 v1::GetVolumeGroupSnapshotResponse& reply) const {
  KEELSON_RETURN_IF_ERROR(CheckId(request.group_snapshot_id(), "group_snapshot_id"));
  auto record = context_.store.Group(request.group_snapshot_id());
  if (!record) {
    return Error(Code::kNotFound, "group snapshot " + request.group_snapshot_id() + " does not exist");
  }
  KEELSON_RETURN_IF_ERROR(CheckMembers(*record, request.snapshot_ids()));
  KEELSON_ASSIGN_OR_RETURN(*reply.mutable_group_snapshot(), Describe(context_.store, *record));
  return {};
}

}  // namespace keelson::csi::local
