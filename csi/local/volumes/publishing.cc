#include "csi/local/host/target.h"
#include "csi/local/model/ephemeral.h"
#include "csi/local/volumes/node_calls.h"

namespace keelson::csi::local {

namespace {

using Mode = v1::VolumeCapability::AccessMode;

// kConflict: somebody else has the volume, and wants it alone.
Result<> CheckSingleWriter(const Use& use, const v1::NodePublishVolumeRequest& request) {
  if (request.volume_capability().access_mode().mode() != Mode::SINGLE_NODE_SINGLE_WRITER) return {};
  for (const Mounted& mount : use.mounts) {
    if (mount.at == request.target_path() || mount.at == request.staging_target_path()) continue;
    return Error(Code::kConflict, "volume " + request.volume_id() + " has its single writer at " + mount.at);
  }
  return {};
}

// True: the target is as wanted. kAlreadyExists: it is this volume in another way. kConflict: another's.
Result<bool> IsPublished(const Use& use, const std::string& target, bool node, bool read_only) {
  if (const Mounted* mount = use.At(target)) {
    if (mount->node == node && mount->read_only == read_only) return true;
    return Error(Code::kAlreadyExists, "the volume is at " + target + " with another capability");
  }
  KEELSON_ASSIGN_OR_RETURN(bool taken, IsTaken(target));
  if (taken) return Error(Code::kConflict, "something else is mounted at " + target);
  return false;
}

}  // namespace

Result<bool> NodeCalls::IsQuicklyPublished(const VolumeRecord& record,
                                           const v1::NodePublishVolumeRequest& request) const {
  // A single writer is looked for everywhere.
  if (record.logical || record.directory || request.volume_capability().has_block() ||
      request.volume_capability().access_mode().mode() == Mode::SINGLE_NODE_SINGLE_WRITER) {
    return false;
  }
  const std::string image = context_.store.Image(Kind::kVolume, record.id);
  KEELSON_ASSIGN_OR_RETURN(const auto staged, FindMounted(image, request.staging_target_path()));
  if (!staged) return false;
  KEELSON_RETURN_IF_ERROR(MakeTarget(request.target_path(), TargetType::kDirectory));
  KEELSON_ASSIGN_OR_RETURN(const auto there, FindMounted(image, request.target_path()));
  const bool read_only = request.readonly() || IsReader(request.volume_capability()) || staged->read_only;
  return there && there->read_only == read_only;
}

Result<> NodeCalls::PublishFileSystem(const Use& use, const v1::NodePublishVolumeRequest& request) {
  const std::string& target = request.target_path();
  const Mounted* staged = use.At(request.staging_target_path());
  if (!staged || staged->node) {
    return Error(Code::kConflict,
                 "volume " + request.volume_id() + " is not staged at " + request.staging_target_path());
  }
  const bool read_only = request.readonly() || IsReader(request.volume_capability()) || staged->read_only;
  KEELSON_RETURN_IF_ERROR(MakeTarget(target, TargetType::kDirectory));
  KEELSON_ASSIGN_OR_RETURN(bool published, IsPublished(use, target, false, read_only));
  if (published) return {};
  return Bind(request.staging_target_path(), target, read_only);
}

Result<> NodeCalls::PublishDevice(const Use& use, const v1::NodePublishVolumeRequest& request) {
  const std::string& target = request.target_path();
  for (const Mounted& mount : use.mounts) {
    if (!mount.node) {
      return Error(Code::kConflict, "volume " + request.volume_id() + " is mounted at " + mount.at);
    }
  }
  const linux::LoopDevice* device = nullptr;
  for (const linux::LoopDevice& one : use.devices) {
    if (!one.autoclear) device = &one;
  }
  if (!device) return Error(Code::kConflict, "volume " + request.volume_id() + " is not staged as a device");
  // A read-only mount of a device's node does not keep anybody from writing to the device.
  if ((request.readonly() || IsReader(request.volume_capability())) && !device->read_only) {
    return Error(
        Code::kInvalid,
        "a device is read-only for all or for none: stage it with access mode SINGLE_NODE_READER_ONLY");
  }
  KEELSON_ASSIGN_OR_RETURN(bool published, IsPublished(use, target, true, false));
  if (published) return {};
  KEELSON_RETURN_IF_ERROR(MakeTarget(target, TargetType::kFile));
  return Bind(device->path, target, false);
}

Result<> NodeCalls::Publish(const v1::NodePublishVolumeRequest& request) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.target_path(), "target_path"));
  if (!request.has_volume_capability()) return Error(Code::kInvalid, "volume_capability is required");
  KEELSON_RETURN_IF_ERROR(CheckCapability(request.volume_capability()));
  if (IsEphemeral(request.volume_context())) return PublishEphemeral(request);
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(const VolumeRecord record, context_.FindVolume(request.volume_id()));
  if (request.staging_target_path().empty()) {
    return Error(Code::kConflict, "staging_target_path is required: the volume has to be staged");
  }
  KEELSON_ASSIGN_OR_RETURN(const bool done, IsQuicklyPublished(record, request));
  if (done) return {};
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(request.volume_id()));
  KEELSON_RETURN_IF_ERROR(CheckSingleWriter(use, request));
  return request.volume_capability().has_block() ? PublishDevice(use, request)
                                                 : PublishFileSystem(use, request);
}

Result<> NodeCalls::Unpublish(const v1::NodeUnpublishVolumeRequest& request) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.target_path(), "target_path"));
  const auto own = context_.store.Volume(context_.EphemeralId(request.volume_id()));
  if ((own && own->ephemeral) || IsEphemeralId(request.volume_id())) return UnpublishEphemeral(request);
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  KEELSON_RETURN_IF_ERROR(context_.UnmountVolume(record.id, request.target_path()));
  KEELSON_ASSIGN_OR_RETURN(bool taken, IsTaken(request.target_path()));
  if (taken) return Error(Code::kConflict, "something else is mounted at " + request.target_path());
  return RemoveTarget(request.target_path());
}

}  // namespace keelson::csi::local
