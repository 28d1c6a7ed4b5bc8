#include <sys/mount.h>

#include "csi/local/host/device.h"
#include "csi/local/host/filesystem.h"
#include "csi/local/host/target.h"
#include "csi/local/model/mount_options.h"
#include "csi/local/volumes/directories.h"
#include "csi/local/volumes/node_calls.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

// A file system is made in a new file, which then replaces the image: mkfs never writes to what may hold data, and a
// killed mkfs leaves the image as it was.
Result<> MakeFileSystem(const Context& context, const VolumeRecord& record, const std::string& type) {
  const std::string image = context.store.Image(Kind::kVolume, record.id);
  KEELSON_ASSIGN_OR_RETURN(bool zeros, IsZeros(image));
  if (!zeros) {
    return Error(Code::kConflict,
                 "volume " + record.id + " holds data that is no file system: it is not formatted");
  }
  TemporaryImage fresh(context.store.Temporary(record.id));
  KEELSON_RETURN_IF_ERROR(RemoveForGood(fresh.path()));
  KEELSON_RETURN_IF_ERROR(MakeImage(fresh.path(), record.capacity, false));
  KEELSON_RETURN_IF_ERROR(Format(fresh.path(), type));
  // Also writes out what mkfs has written.
  KEELSON_RETURN_IF_ERROR(GrowImage(fresh.path(), record.capacity, false));
  KEELSON_RETURN_IF_ERROR(fresh.MoveTo(image));
  log::Info("Volume formatted", {{"id", record.id}, {"type", type}});
  return {};
}

Result<> EnsureFileSystem(const Context& context, const VolumeRecord& record, const std::string& content,
                          const std::string& type) {
  if (record.logical) {
    KEELSON_ASSIGN_OR_RETURN(const bool half, context.logical.IsHalfFormatted(record.id));
    if (half) return context.logical.Format(record.id, type);
  }
  KEELSON_ASSIGN_OR_RETURN(std::string found, FileSystemOn(content));
  if (found.empty()) {
    KEELSON_RETURN_IF_ERROR(record.logical ? context.logical.Format(record.id, type)
                                           : MakeFileSystem(context, record, type));
  }
  if (!found.empty() && found != type) {
    return Error(Code::kConflict, "volume " + record.id + " holds " + found + ", not " + type);
  }
  // Also where a crash came between: what is reserved stays so.
  return record.thick ? GrowImage(content, record.capacity, true) : Result<>();
}

// Of a file system that is not mounted: with autoclear, so that the device ends with its mount.
Result<linux::AttachedLoop> AttachLoop(const std::string& image) {
  return linux::AttachLoop(image, {.autoclear = true});
}

}  // namespace

Result<MountOptions> NodeCalls::OptionsOf(const Place& place) {
  const auto& given = place.capability.mount().mount_flags();
  KEELSON_ASSIGN_OR_RETURN(MountOptions options, ParseMountOptions({given.begin(), given.end()}));
  if (place.read_only) options.flags |= MS_RDONLY;
  return options;
}

Result<> NodeCalls::MountFileSystem(const VolumeRecord& record, const Place& place) {
  const std::string& at = place.path;
  const std::string type = FileSystemOf(place.capability);
  KEELSON_ASSIGN_OR_RETURN(const std::string content, context_.Content(record));
  KEELSON_ASSIGN_OR_RETURN(MountOptions options, OptionsOf(place));
  // Clones have their source's UUID, and XFS mounts a UUID once.
  if (type == "xfs") options.data += options.data.empty() ? "nouuid" : ",nouuid";
  const bool read_only = (options.flags & MS_RDONLY) != 0;
  if (!record.logical) {
    KEELSON_ASSIGN_OR_RETURN(const auto there, FindMounted(content, at));
    if (there && there->type == type && there->read_only == read_only) {
      return read_only ? Result<>() : Grow(there->device, at, type, record.capacity);
    }
  }
  KEELSON_ASSIGN_OR_RETURN(Use use, record.logical ? FindDeviceUse(content) : FindUse(content));
  std::string device;
  for (const Mounted& mount : use.mounts) {
    if (mount.node) {
      return Error(Code::kConflict, "volume " + record.id + " is in use as a device at " + mount.at);
    }
    device = mount.device;
  }
  if (const Mounted* mount = use.At(at)) {
    KEELSON_ASSIGN_OR_RETURN(std::string found, FileSystemOn(content));
    if (found == type && mount->read_only == read_only) {
      return read_only ? Result<>() : Grow(device, at, type, record.capacity);
    }
    return Error(Code::kAlreadyExists, "volume " + record.id + " is at " + at + " with another capability");
  }
  KEELSON_ASSIGN_OR_RETURN(bool taken, IsTaken(at));
  if (taken) return Error(Code::kConflict, "something else is mounted at " + at);
  linux::AttachedLoop loop;
  if (device.empty()) {
    KEELSON_RETURN_IF_ERROR(DetachIdle(use));  // staged as a device, and never used
    if (record.logical) KEELSON_RETURN_IF_ERROR(SetDeviceReadOnly(content, false));
    KEELSON_RETURN_IF_ERROR(EnsureFileSystem(context_, record, content, type));
    if (!record.logical) {
      KEELSON_ASSIGN_OR_RETURN(loop, AttachLoop(content));
    }
    device = record.logical ? content : loop.path;
    KEELSON_RETURN_IF_ERROR(CheckAndGrow(device, type, record.capacity));
  }
  KEELSON_RETURN_IF_ERROR(linux::MountFilesystem(device, at, type, options.flags, options.data));
  // XFS that is larger than its source, or that has grown while it was not mounted.
  return read_only ? Result<>() : Grow(device, at, type, record.capacity);
}

Result<> NodeCalls::MountDirectory(const VolumeRecord& record, const Place& place) {
  const std::string& at = place.path;
  if (place.capability.has_block()) {
    return Error(Code::kInvalid, "volume " + record.id + " is a directory, not a block device");
  }
  KEELSON_ASSIGN_OR_RETURN(MountOptions options, OptionsOf(place));
  const bool read_only = (options.flags & MS_RDONLY) != 0;
  // The file system is mounted already, with the options that it has.
  if ((options.flags & ~static_cast<unsigned long>(MS_RDONLY)) != 0 || !options.data.empty()) {
    return Error(Code::kInvalid, "a volume of type directory takes no mount options but ro");
  }
  KEELSON_RETURN_IF_ERROR(HoldCapacity(context_, record));
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(record.id));
  if (const Mounted* mount = use.At(at)) {
    if (mount->read_only == read_only) return {};
    return Error(Code::kAlreadyExists, "volume " + record.id + " is at " + at + " with another capability");
  }
  KEELSON_ASSIGN_OR_RETURN(bool taken, IsTaken(at));
  if (taken) return Error(Code::kConflict, "something else is mounted at " + at);
  return Bind(context_.store.Directory(Kind::kVolume, record.id), at, read_only);
}

Result<> NodeCalls::StageDevice(const VolumeRecord& record, const v1::NodeStageVolumeRequest& request) {
  const bool read_only = IsReader(request.volume_capability());
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(record.id));
  for (const Mounted& mount : use.mounts) {
    if (!mount.node) return Error(Code::kConflict, "volume " + record.id + " is mounted at " + mount.at);
  }
  for (const linux::LoopDevice& device : use.devices) {
    if (device.read_only == read_only && !device.autoclear) return {};
    if (use.Mounts(device.path)) {
      return Error(Code::kAlreadyExists, "volume " + record.id + " is staged with another access mode");
    }
  }
  KEELSON_RETURN_IF_ERROR(DetachIdle(use));
  KEELSON_ASSIGN_OR_RETURN(const std::string content, context_.Content(record));
  if (record.logical) return SetDeviceReadOnly(content, read_only);
  KEELSON_RETURN_IF_ERROR(linux::AttachLoop(content, {.read_only = read_only}));
  return {};
}

Result<> NodeCalls::Stage(const v1::NodeStageVolumeRequest& request) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.staging_target_path(), "staging_target_path"));
  if (!request.has_volume_capability()) return Error(Code::kInvalid, "volume_capability is required");
  KEELSON_RETURN_IF_ERROR(CheckCapability(request.volume_capability()));
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  KEELSON_RETURN_IF_ERROR(CheckDirectory(request.staging_target_path()));
  const Place place{request.staging_target_path(), request.volume_capability(), false};
  if (record.directory) return MountDirectory(record, place);
  return request.volume_capability().has_block() ? StageDevice(record, request)
                                                 : MountFileSystem(record, place);
}

Result<> NodeCalls::Unstage(const v1::NodeUnstageVolumeRequest& request) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.staging_target_path(), "staging_target_path"));
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UnmountVolume(record.id, request.staging_target_path()));
  return DetachIdle(use);
}

}  // namespace keelson::csi::local
