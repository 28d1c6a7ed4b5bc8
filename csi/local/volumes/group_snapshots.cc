#include <algorithm>
#include <set>

#include "csi/local/volumes/content.h"
#include "csi/local/volumes/snapshot_calls.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

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

Result<> RemoveMembers(Store& store, const std::vector<std::string>& snapshots) {
  for (const std::string& id : snapshots) KEELSON_RETURN_IF_ERROR(store.Remove(Kind::kSnapshot, id));
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
    if (volume.directory || volume.logical) {
      return Error(Code::kInvalid,
                   "volume " + id + " is of type " + TypeOf(volume) + ", which cannot be frozen with others");
    }
    volumes.push_back(std::move(volume));
    group.snapshots.push_back(context_.Id(Kind::kSnapshot, MemberName(group.id, id)));
  }
  KEELSON_RETURN_IF_ERROR(RemoveMembers(context_.store, group.snapshots));
  std::vector<std::unique_ptr<TemporaryImage>> images;
  {
    Frozen frozen(context_);
    for (const VolumeRecord& volume : volumes) {
      KEELSON_RETURN_IF_ERROR(frozen.Freeze(volume.id));
      // Not of one instant with the others: nothing holds its writers up.
      if (volumes.size() > 1 && frozen.IsLive(volume.id)) {
        return Error(Code::kConflict, "volume " + volume.id + " is a device in use, which cannot be frozen");
      }
    }
    group.created = Nanoseconds(context_.clock.Now());
    for (size_t i = 0; i < volumes.size(); ++i) {
      images.push_back(std::make_unique<TemporaryImage>(context_.store.Temporary(group.snapshots[i])));
      KEELSON_RETURN_IF_ERROR(RemoveForGood(images[i]->path()));
      KEELSON_RETURN_IF_ERROR(CopyFrozen(context_, frozen, volumes[i], {.to = images[i]->path()}));
    }
  }
  for (size_t i = 0; i < volumes.size(); ++i) {
    SnapshotRecord member;
    member.id = group.snapshots[i];
    member.name = group.name;
    member.source_volume = volumes[i].id;
    member.size = volumes[i].capacity;
    member.created = group.created;
    member.group = group.id;
    KEELSON_RETURN_IF_ERROR(images[i]->MoveTo(context_.store.Image(Kind::kSnapshot, member.id)));
    KEELSON_RETURN_IF_ERROR(context_.store.Put(member));
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
  return RemoveMembers(context_.store, members);
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
