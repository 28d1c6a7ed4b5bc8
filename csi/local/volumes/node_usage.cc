#include <algorithm>

#include "csi/local/host/filesystem.h"
#include "csi/local/volumes/growth.h"
#include "csi/local/volumes/node_calls.h"

namespace keelson::csi::local {

namespace {

void Add(v1::NodeGetVolumeStatsResponse& reply, v1::VolumeUsage::Unit unit, int64_t total, int64_t available,
         int64_t used) {
  v1::VolumeUsage& usage = *reply.add_usage();
  usage.set_unit(unit);
  usage.set_total(total);
  usage.set_available(available);
  usage.set_used(used);
}

Result<> AddFileSystem(const std::string& at, v1::NodeGetVolumeStatsResponse& reply) {
  KEELSON_ASSIGN_OR_RETURN(const Usage usage, UsageOf(at));
  Add(reply, v1::VolumeUsage::BYTES, usage.total, usage.available, usage.used);
  Add(reply, v1::VolumeUsage::INODES, usage.inodes, usage.free_inodes, usage.used_inodes);
  return {};
}

// Bytes that have been written to a device.
Result<int64_t> TakenBy(const Context& context, const VolumeRecord& record) {
  if (record.logical) {
    KEELSON_ASSIGN_OR_RETURN(const LogicalVolume volume, context.logical.Find(record.id));
    return volume.Taken();
  }
  KEELSON_ASSIGN_OR_RETURN(const ImageSize image, SizeOf(context.store.Image(Kind::kVolume, record.id)));
  return image.taken;
}

}  // namespace

Result<> NodeCalls::Stats(const v1::NodeGetVolumeStatsRequest& request,
                          v1::NodeGetVolumeStatsResponse& reply) const {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_path(), "volume_path"));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindOnNode(request.volume_id()));
  if (!record.logical && !record.directory) {
    // The kubelet asks for all volumes each minute.
    KEELSON_ASSIGN_OR_RETURN(
        const auto there, FindMounted(context_.store.Image(Kind::kVolume, record.id), request.volume_path()));
    if (there) {
      *reply.mutable_volume_condition() = ConditionOf(context_, record);
      return AddFileSystem(request.volume_path(), reply);
    }
  }
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(record.id));
  const Mounted* mount = use.At(request.volume_path());
  if (!mount) {
    return Error(Code::kNotFound, "volume " + record.id + " is not at \"" + request.volume_path() + "\"");
  }
  if (mount->node) {
    KEELSON_ASSIGN_OR_RETURN(const int64_t taken, TakenBy(context_, record));
    const int64_t used = std::min(taken, record.capacity);
    Add(reply, v1::VolumeUsage::BYTES, record.capacity, record.capacity - used, used);
  } else {
    KEELSON_RETURN_IF_ERROR(AddFileSystem(mount->at, reply));
  }
  *reply.mutable_volume_condition() = ConditionOf(context_, record);
  return {};
}

Result<> NodeCalls::Expand(const v1::NodeExpandVolumeRequest& request, v1::NodeExpandVolumeResponse& reply) {
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_id(), "volume_id"));
  KEELSON_RETURN_IF_ERROR(CheckId(request.volume_path(), "volume_path"));
  KEELSON_ASSIGN_OR_RETURN(Locks::Held lock, context_.locks.Exclusive(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(VolumeRecord record, context_.FindVolume(request.volume_id()));
  KEELSON_ASSIGN_OR_RETURN(Use use, context_.UseOfVolume(record.id));
  const Mounted* mount = use.At(request.volume_path());
  if (!mount) mount = use.At(request.staging_target_path());
  if (!mount && use.devices.empty()) {
    return Error(Code::kNotFound, "volume " + record.id + " is not at \"" + request.volume_path() + "\"");
  }
  // Nothing to do after ControllerExpandVolume. Where no controller can call this node, the resizer leaves it to this call.
  KEELSON_ASSIGN_OR_RETURN(record, GrowVolume(context_, record, request.capacity_range()));
  for (const linux::LoopDevice& device : use.devices) {
    if (!device.read_only && use.loops) KEELSON_RETURN_IF_ERROR(linux::ReloadLoopSize(device.path));
  }
  if (mount && !mount->node && !record.directory) {
    KEELSON_ASSIGN_OR_RETURN(const std::string content, context_.Content(record));
    KEELSON_ASSIGN_OR_RETURN(std::string type, FileSystemOn(content));
    KEELSON_RETURN_IF_ERROR(Grow(mount->device, mount->at, type, record.capacity));
  }
  reply.set_capacity_bytes(record.capacity);
  return {};
}

}  // namespace keelson::csi::local
