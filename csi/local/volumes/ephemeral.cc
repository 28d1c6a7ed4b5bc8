#include "csi/local/model/ephemeral.h"

#include "csi/local/host/target.h"
#include "csi/local/volumes/making.h"
#include "csi/local/volumes/node_calls.h"
#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

Result<VolumeRecord> Wanted(const Context& context, const v1::NodePublishVolumeRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(const EphemeralVolume volume,
                           ParseEphemeral(request.volume_context(), request.volume_capability()));
  VolumeRecord record;
  record.id = context.EphemeralId(request.volume_id());
  record.name = request.volume_id();
  record.capacity = volume.capacity;
  record.thick = volume.parameters.thick;
  record.directory = volume.parameters.directory;
  record.logical = volume.parameters.logical;
  record.ephemeral = true;
  record.target = request.target_path();
  return record;
}

// kAlreadyExists: the volume was published in another way.
Result<> Compare(const VolumeRecord& found, const VolumeRecord& wanted) {
  const char* what = nullptr;
  if (found.capacity != wanted.capacity) what = "size";
  if (found.thick != wanted.thick) what = "provisioning";
  if (std::string_view(TypeOf(found)) != TypeOf(wanted)) what = "type";
  if (found.target != wanted.target) what = "target";
  if (!found.ephemeral) what = "use";
  if (!what) return {};
  return Error(Code::kAlreadyExists, "ephemeral volume " + wanted.name + " exists with another " + what);
}

}  // namespace

Result<> NodeCalls::PublishEphemeral(const v1::NodePublishVolumeRequest& request) {
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, Wanted(context_, request));
  const Place place{request.target_path(), request.volume_capability(),
                    request.readonly() || IsReader(request.volume_capability())};
  KEELSON_RETURN_IF_ERROR(OptionsOf(place));
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(record.id));
  // As they are made: logical volumes have whole extents.
  KEELSON_ASSIGN_OR_RETURN(const int64_t block, BlockOf(context_, record));
  record.capacity = (record.capacity + block - 1) / block * block;
  KEELSON_RETURN_IF_ERROR(MakeTarget(request.target_path(), TargetType::kDirectory));
  if (const auto found = context_.store.Volume(record.id)) {
    KEELSON_RETURN_IF_ERROR(Compare(*found, record));
    record = *found;
  } else {
    KEELSON_RETURN_IF_ERROR(MakeVolume(context_, record));
    log::Info("Ephemeral volume created",
              {{"id", record.id}, {"name", record.name}, {"bytes", record.capacity}});
  }
  return record.directory ? MountDirectory(record, place) : MountFileSystem(record, place);
}

// The record goes last: as long as it is there, a repeated call finds what is left to do.
Result<> NodeCalls::UnpublishEphemeral(const v1::NodeUnpublishVolumeRequest& request) {
  const std::string id = context_.EphemeralId(request.volume_id());
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(id));
  KEELSON_RETURN_IF_ERROR(context_.UnmountVolume(id, request.target_path()));
  KEELSON_ASSIGN_OR_RETURN(const bool taken, IsTaken(request.target_path()));
  if (taken) return Error(Code::kConflict, "something else is mounted at " + request.target_path());
  KEELSON_RETURN_IF_ERROR(RemoveTarget(request.target_path()));
  const auto record = context_.store.Volume(id);
  if (!record || record->target != request.target_path()) return {};
  return RemoveVolume(context_, id);
}

Result<> RemoveLostEphemeralVolumes(Context& context) {
  for (const VolumeRecord& record : context.store.Volumes()) {
    if (!record.ephemeral || PathExists(record.target.substr(0, record.target.rfind('/')))) continue;
    KEELSON_ASSIGN_OR_RETURN(const Use use, context.UseOfVolume(record.id));
    if (!use.mounts.empty()) continue;
    log::Warn("Remove an ephemeral volume whose pod is gone", {{"id", record.id}, {"target", record.target}});
    KEELSON_RETURN_IF_ERROR(RemoveVolume(context, record.id));
  }
  return {};
}

}  // namespace keelson::csi::local
