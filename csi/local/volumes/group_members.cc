#include "csi/local/volumes/group_members.h"

#include <algorithm>

#include "csi/local/volumes/content.h"

namespace keelson::csi::local {

namespace {

int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

SnapshotRecord MemberOf(const GroupRecord& group, const VolumeRecord& volume, const std::string& id) {
  SnapshotRecord member;
  member.id = id;
  member.name = group.name;
  member.source_volume = volume.id;
  member.size = volume.capacity;
  member.created = group.created;
  member.group = group.id;
  member.logical = volume.logical;
  return member;
}

// Whether somebody may write to it now.
Result<bool> HasWriters(const Context& context, const VolumeRecord& volume) {
  KEELSON_ASSIGN_OR_RETURN(const Use use, context.UseOfVolume(volume.id));
  return !use.mounts.empty() || (use.loops && !use.devices.empty());
}

// LVM holds up the writers of a volume while it takes its snapshot: nothing else is needed for the only one that has any.
Result<> HoldWriters(const Context& context, const std::vector<VolumeRecord>& volumes, Frozen& frozen) {
  std::vector<const VolumeRecord*> written;
  for (const VolumeRecord& volume : volumes) {
    KEELSON_ASSIGN_OR_RETURN(const bool writers, HasWriters(context, volume));
    if (writers) written.push_back(&volume);
  }
  if (written.size() == 1 && written.front()->logical) return {};
  for (const VolumeRecord* volume : written) {
    KEELSON_RETURN_IF_ERROR(frozen.Freeze(volume->id));
    // Not of one instant with the others: nothing holds its writers up.
    if (volumes.size() > 1 && frozen.IsLive(volume->id)) {
      return Error(Code::kConflict, "volume " + volume->id + " is a device in use, which cannot be frozen");
    }
  }
  return {};
}

Result<> TakeLogical(Context& context, const Frozen& frozen, const SnapshotRecord& member) {
  auto taken = context.logical.Snapshot(member);
  if (taken || !frozen.Holds(member.source_volume) || taken.error().Is(Code::kTooManyRequests)) return taken;
  return Error(
      Code::kConflict,
      "volume " + member.source_volume +
          " is mounted, as others of the group are: a kernel before Linux 6.8 lets LVM take no snapshot of a "
          "frozen file system: " +
          taken.error().message());
}

}  // namespace

Result<> TakeMembers(Context& context, const std::vector<VolumeRecord>& volumes, GroupRecord& group) {
  std::vector<std::unique_ptr<TemporaryImage>> images(volumes.size());
  {
    Frozen frozen(context);
    KEELSON_RETURN_IF_ERROR(HoldWriters(context, volumes, frozen));
    group.created = Nanoseconds(context.clock.Now());
    for (size_t i = 0; i < volumes.size(); ++i) {
      const std::string& id = group.snapshots[i];
      if (volumes[i].logical) {
        KEELSON_RETURN_IF_ERROR(TakeLogical(context, frozen, MemberOf(group, volumes[i], id)));
        continue;
      }
      images[i] = std::make_unique<TemporaryImage>(context.store.Temporary(id));
      KEELSON_RETURN_IF_ERROR(RemoveForGood(images[i]->path()));
      KEELSON_RETURN_IF_ERROR(CopyFrozen(context, frozen, volumes[i], {.to = images[i]->path()}));
    }
  }
  for (size_t i = 0; i < volumes.size(); ++i) {
    if (!images[i]) continue;
    const SnapshotRecord member = MemberOf(group, volumes[i], group.snapshots[i]);
    KEELSON_RETURN_IF_ERROR(images[i]->MoveTo(context.store.Image(Kind::kSnapshot, member.id)));
    KEELSON_RETURN_IF_ERROR(context.store.Put(member));
  }
  return {};
}

}  // namespace keelson::csi::local
