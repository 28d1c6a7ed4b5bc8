#include "csi/local/volumes/making.h"

#include "csi/local/host/image.h"
#include "csi/local/model/requests.h"
#include "csi/local/volumes/content.h"
#include "csi/local/volumes/directories.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

namespace {

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

}  // namespace

Result<> MakeVolume(Context& context, VolumeRecord& record, const Source& source) {
  if (record.logical) return context.logical.Create(record, source.id);
  KEELSON_ASSIGN_OR_RETURN(Space::Promise promise, context.space.Reserve(record.capacity, record.thick));
  // What an earlier call could not remove.
  KEELSON_RETURN_IF_ERROR(context.store.Remove(Kind::kVolume, record.id));
  return record.directory ? MakeDirectoryContent(context, record, source)
                          : MakeImageContent(context, record, source);
}

Result<int64_t> BlockOf(const Context& context, const VolumeRecord& record) {
  if (!record.logical) return kBlock;
  KEELSON_ASSIGN_OR_RETURN(const ThinPool pool, context.logical.Pool());
  return pool.extent;
}

Result<> RemoveVolume(Context& context, const std::string& id) {
  KEELSON_ASSIGN_OR_RETURN(Use use, context.UseOfVolume(id));
  if (!use.mounts.empty()) {
    return Error(Code::kConflict, "volume " + id + " is in use at " + use.mounts.back().at);
  }
  KEELSON_RETURN_IF_ERROR(DetachIdle(use));
  const auto known = context.store.Volume(id);
  if (known) KEELSON_RETURN_IF_ERROR(ReleaseCapacity(context, *known));
  // Without a record there may be what an earlier call could not remove.
  const bool logical = known ? known->logical : context.logical.configured();
  if (logical) KEELSON_RETURN_IF_ERROR(context.logical.Remove(Kind::kVolume, id));
  if (!known || !known->logical) KEELSON_RETURN_IF_ERROR(context.store.Remove(Kind::kVolume, id));
  if (known) log::Info("Volume deleted", {{"id", id}});
  return {};
}

}  // namespace keelson::csi::local
