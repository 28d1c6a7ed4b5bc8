#include "csi/local/volumes/content.h"

#include <fcntl.h>

#include <algorithm>

#include "csi/local/host/filesystem.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

// Somewhere the file system is mounted; empty: nowhere.
std::string MountPointOf(const Use& use) {
  for (const Mounted& mount : use.mounts) {
    if (!mount.node) return mount.at;
  }
  return "";
}

Result<> WriteOut(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY));
  if (::fsync(fd.get()) != 0) return ErrnoError("fsync " + device);
  return {};
}

Result<> ThawVolume(const Context& context, const std::string& id) {
  KEELSON_ASSIGN_OR_RETURN(Use use, context.UseOfVolume(id));
  const std::string at = MountPointOf(use);
  if (!at.empty()) KEELSON_RETURN_IF_ERROR(Thaw(at));
  return RemoveForGood(context.store.FrozenMark(id));
}

}  // namespace

Frozen::~Frozen() {
  for (const One& one : frozen_) {
    auto thawed = Thaw(one.mounted_at);
    if (thawed) thawed = RemoveForGood(context_.store.FrozenMark(one.id));
    if (!thawed) log::Error("Cannot thaw a volume", {{"id", one.id}, {"err", thawed.error()}});
  }
}

Result<> Frozen::Freeze(const std::string& id) {
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(id));
  const std::string at = MountPointOf(use);
  if (!at.empty()) {
    // The mark is first on the disk.
    KEELSON_RETURN_IF_ERROR(WriteFileAtomic(context_.store.FrozenMark(id), "", 0600));
    if (auto frozen = local::Freeze(at); !frozen) {
      (void)RemoveForGood(context_.store.FrozenMark(id));
      return frozen;
    }
    frozen_.push_back({id, at});
    return {};
  }
  for (const linux::LoopDevice& device : use.devices) {
    KEELSON_RETURN_IF_ERROR(WriteOut(device.path));
    if (!device.read_only) live_.push_back(id);
  }
  return {};
}

bool Frozen::IsLive(const std::string& id) const {
  return std::find(live_.begin(), live_.end(), id) != live_.end();
}

bool Frozen::Holds(const std::string& id) const {
  return std::any_of(frozen_.begin(), frozen_.end(), [&](const One& one) { return one.id == id; });
}

Result<> CopyFrozen(const Context& context, const Frozen& frozen, const VolumeRecord& volume,
                    const CopyRequest& request) {
  const bool own = request.own || volume.thick;
  const bool live = frozen.IsLive(volume.id);
  if (live && own) {
    return Error(
        Code::kConflict,
        "volume " + volume.id + " is a device in use: a copy with its own space would not be of one instant");
  }
  const Copying copying = live ? Copying::kShared : own ? Copying::kOwn : Copying::kAny;
  return CopyImage(context.store.Image(Kind::kVolume, volume.id), request.to, copying,
                   [&] { return context.stop.stop_requested(); });
}

Result<> CopyVolume(const Context& context, const std::string& id, const CopyRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context.FindVolume(id));
  Frozen frozen(context);
  KEELSON_RETURN_IF_ERROR(frozen.Freeze(id));
  return CopyFrozen(context, frozen, record, request);
}

Result<> CopySnapshot(const Context& context, const std::string& id, const CopyRequest& request) {
  return CopyImage(context.store.Image(Kind::kSnapshot, id), request.to,
                   request.own ? Copying::kOwn : Copying::kAny,
                   [&] { return context.stop.stop_requested(); });
}

Result<> ThawRemains(const Context& context) {
  KEELSON_ASSIGN_OR_RETURN(auto marks, context.store.FrozenMarks());
  for (const std::string& id : marks) {
    if (!IsId(Kind::kVolume, id)) {
      KEELSON_RETURN_IF_ERROR(RemoveForGood(context.store.FrozenMark(id)));  // a mark that was not complete
      continue;
    }
    log::Warn("Thaw a volume that a killed driver has frozen", {{"id", id}});
    KEELSON_RETURN_IF_ERROR(ThawVolume(context, id));
  }
  return {};
}

}  // namespace keelson::csi::local
