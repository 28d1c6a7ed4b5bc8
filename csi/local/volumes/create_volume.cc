#include "csi/local/host/image.h"
#include "csi/local/volumes/content.h"
#include "csi/local/volumes/directories.h"
#include "csi/local/volumes/growth.h"
#include "csi/local/volumes/volume_calls.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

Result<VolumeRecord> Wanted(const Context& context, const v1::CreateVolumeRequest& request) {
  KEELSON_RETURN_IF_ERROR(CheckName(request.name()));
  KEELSON_RETURN_IF_ERROR(CheckCapabilities(request.volume_capabilities()));
  KEELSON_ASSIGN_OR_RETURN(Parameters parameters, ParseParameters(request.parameters()));
  if (!request.mutable_parameters().empty()) {
    return Error(Code::kInvalid, "mutable_parameters are not supported");
  }
  VolumeRecord record;
  record.id = context.Id(Kind::kVolume, request.name());
  record.name = request.name();
  record.thick = parameters.thick;
  record.directory = parameters.directory;
  record.logical = parameters.logical;
  if (record.directory) KEELSON_RETURN_IF_ERROR(CheckDirectoryCapabilities(request.volume_capabilities()));
  if (!request.has_volume_content_source()) return record;
  const v1::VolumeContentSource& source = request.volume_content_source();
  if (source.has_snapshot()) {
    record.source_snapshot = source.snapshot().snapshot_id();
    KEELSON_RETURN_IF_ERROR(CheckId(record.source_snapshot, "snapshot_id of volume_content_source"));
  } else if (source.has_volume()) {
    record.source_volume = source.volume().volume_id();
    KEELSON_RETURN_IF_ERROR(CheckId(record.source_volume, "volume_id of volume_content_source"));
  } else {
    return Error(Code::kInvalid, "volume_content_source is of no known type");
  }
  return record;
}

// What the name has already; kAlreadyExists if that is something else than what is wanted.
Result<> Compare(const VolumeRecord& found, const VolumeRecord& wanted, const v1::CapacityRange& range) {
  std::string what;
  if (!Fits(range, found.capacity)) what = "capacity of " + std::to_string(found.capacity) + " bytes";
  if (found.thick != wanted.thick) what = "provisioning";
  if (std::string_view(TypeOf(found)) != TypeOf(wanted)) what = "type";
  if (found.source_snapshot != wanted.source_snapshot || found.source_volume != wanted.source_volume) {
    what = "content source";
  }
  if (what.empty()) return {};
  return Error(Code::kAlreadyExists, "volume \"" + wanted.name + "\" exists with another " + what);
}

struct Source {
  std::optional<Locks::Held> lock;
  Kind kind = Kind::kSnapshot;
  std::string id;  // empty: none
  int64_t size = 0;
  std::string type;
};

Result<Source> OfOneType(Source source, const VolumeRecord& wanted) {
  if (source.id.empty() || source.type == TypeOf(wanted)) return source;
  return Error(Code::kInvalid, "the content source is of another type than the volume: " + source.id);
}

Result<Source> FindSource(Context& context, const VolumeRecord& wanted) {
  Source source;
  if (!wanted.source_snapshot.empty()) {
    KEELSON_ASSIGN_OR_RETURN(source.lock, context.locks.Shared(wanted.source_snapshot));
    KEELSON_ASSIGN_OR_RETURN(SnapshotRecord record, context.FindSnapshot(wanted.source_snapshot));
    source.id = record.id;
    source.size = record.size;
    source.type = TypeOf(record);
  } else if (!wanted.source_volume.empty()) {
    // The source may have to be frozen.
    KEELSON_ASSIGN_OR_RETURN(source.lock, context.locks.Exclusive(wanted.source_volume));
    KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context.FindVolume(wanted.source_volume));
    source.kind = Kind::kVolume;
    source.id = record.id;
    source.size = record.capacity;
    source.type = TypeOf(record);
  }
  return OfOneType(std::move(source), wanted);
}

Result<> MakeContent(Context& context, const VolumeRecord& record, const Source& source,
                     const std::string& path) {
  if (source.id.empty()) return MakeImage(path, record.capacity, record.thick);
  const CopyRequest copy{.own = record.thick, .to = path};
  if (source.kind == Kind::kSnapshot) {
    KEELSON_RETURN_IF_ERROR(CopySnapshot(context, source.id, copy));
  } else {
    KEELSON_RETURN_IF_ERROR(CopyVolume(context, source.id, copy));
  }
  return GrowImage(path, record.capacity, record.thick);
}

Result<> MakeDirectoryContent(const Context& context, VolumeRecord& record, const Source& source) {
  std::string from;
  if (!source.id.empty() && source.kind == Kind::kSnapshot) {
    from = context.store.Directory(Kind::kSnapshot, source.id);
  }
  if (!source.id.empty() && source.kind == Kind::kVolume) {
    KEELSON_ASSIGN_OR_RETURN(VolumeRecord volume, context.FindVolume(source.id));
    KEELSON_ASSIGN_OR_RETURN(from, IdleDirectory(context, volume));
  }
  return CreateDirectoryVolume(context, record, from);
}

Result<> MakeImageContent(Context& context, const VolumeRecord& record, const Source& source) {
  TemporaryImage image(context.store.Temporary(record.id));
  KEELSON_RETURN_IF_ERROR(RemoveForGood(image.path()));
  KEELSON_RETURN_IF_ERROR(MakeContent(context, record, source, image.path()));
  KEELSON_RETURN_IF_ERROR(image.MoveTo(context.store.Image(Kind::kVolume, record.id)));
  return context.store.Put(record);
}

Result<> MakeVolume(Context& context, VolumeRecord& record, const Source& source) {
  if (record.logical) return context.logical.Create(record, source.id);
  KEELSON_ASSIGN_OR_RETURN(Space::Promise promise, context.space.Reserve(record.capacity, record.thick));
  // What an earlier call could not remove.
  KEELSON_RETURN_IF_ERROR(context.store.Remove(Kind::kVolume, record.id));
  return record.directory ? MakeDirectoryContent(context, record, source)
                          : MakeImageContent(context, record, source);
}

// Sizes of logical volumes are multiples of the group's extents.
Result<int64_t> BlockOf(const Context& context, const VolumeRecord& record) {
  if (!record.logical) return kBlock;
  KEELSON_ASSIGN_OR_RETURN(const ThinPool pool, context.logical.Pool());
  return pool.extent;
}

}  // namespace

Result<> VolumeCalls::Create(const v1::CreateVolumeRequest& request, v1::CreateVolumeResponse& reply) {
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, Wanted(context_, request));
  const int64_t least = LeastCapacity(request.volume_capabilities());
  KEELSON_ASSIGN_OR_RETURN(record.capacity, DecideCapacity(request.capacity_range(), least));
  if (!Reaches(request.accessibility_requirements(), context_.config.TopologyKey(),
               context_.config.node_id)) {
    return Error(Code::kTooManyRequests,
                 "volumes of this driver are reached from node " + context_.config.node_id);
  }
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(record.id));
  if (auto found = context_.store.Volume(record.id)) {
    KEELSON_RETURN_IF_ERROR(Compare(*found, record, request.capacity_range()));
    *reply.mutable_volume() = DescribeVolume(context_, *found);
    return {};
  }
  if (record.source_volume == record.id) {
    return Error(Code::kNotFound, "volume " + record.id + " does not exist");
  }
  KEELSON_ASSIGN_OR_RETURN(Source source, FindSource(context_, record));
  KEELSON_ASSIGN_OR_RETURN(const int64_t block, BlockOf(context_, record));
  KEELSON_ASSIGN_OR_RETURN(record.capacity,
                           DecideCapacity(request.capacity_range(), std::max(least, source.size), block));
  KEELSON_RETURN_IF_ERROR(MakeVolume(context_, record, source));
  log::Info("Volume created", {{"id", record.id}, {"name", record.name}, {"bytes", record.capacity}});
  *reply.mutable_volume() = DescribeVolume(context_, record);
  return {};
}

Result<> VolumeCalls::Delete(const v1::DeleteVolumeRequest& request) {
  const std::string& id = request.volume_id();
  KEELSON_RETURN_IF_ERROR(CheckId(id, "volume_id"));
  if (!IsId(Kind::kVolume, id)) return {};
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(id));
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(id));
  if (!use.mounts.empty()) {
    return Error(Code::kConflict, "volume " + id + " is in use at " + use.mounts.back().at);
  }
  KEELSON_RETURN_IF_ERROR(DetachIdle(use));
  const auto known = context_.store.Volume(id);
  if (known) KEELSON_RETURN_IF_ERROR(ReleaseCapacity(context_, *known));
  // Without a record there may be what an earlier call could not remove.
  const bool logical = known ? known->logical : context_.logical.configured();
  if (logical) KEELSON_RETURN_IF_ERROR(context_.logical.Remove(Kind::kVolume, id));
  if (!known || !known->logical) KEELSON_RETURN_IF_ERROR(context_.store.Remove(Kind::kVolume, id));
  if (known) log::Info("Volume deleted", {{"id", id}});
  return {};
}

Result<> VolumeCalls::Expand(const v1::ControllerExpandVolumeRequest& request,
                             v1::ControllerExpandVolumeResponse& reply) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  if (!request.has_capacity_range()) return Error(Code::kInvalid, "capacity_range is required");
  if (request.has_volume_capability()) KEELSON_RETURN_IF_ERROR(CheckCapability(request.volume_capability()));
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(record, GrowVolume(context_, record, request.capacity_range()));
  reply.set_capacity_bytes(record.capacity);
  reply.set_node_expansion_required(true);
  return {};
}

}  // namespace keelson::csi::local
