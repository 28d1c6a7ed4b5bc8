#include <algorithm>

#include "csi/local/volumes/growth.h"
#include "csi/local/volumes/making.h"
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
  if (found.ephemeral) what = "use";
  if (what.empty()) return {};
  return Error(Code::kAlreadyExists, "volume \"" + wanted.name + "\" exists with another " + what);
}

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
  const auto known = context_.store.Volume(id);
  if (known && known->ephemeral) return {};  // its pod's, and no volume of a claim
  return RemoveVolume(context_, id);
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
