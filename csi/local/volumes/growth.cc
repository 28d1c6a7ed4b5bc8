#include "csi/local/volumes/growth.h"

#include "csi/local/host/image.h"
#include "csi/local/model/requests.h"
#include "csi/local/volumes/directories.h"
#include "lib/base/log.h"

namespace keelson::csi::local {

Result<VolumeRecord> GrowVolume(Context& context, VolumeRecord record, const v1::CapacityRange& range) {
  int64_t block = kBlock;
  if (record.logical) {
    KEELSON_ASSIGN_OR_RETURN(const ThinPool pool, context.logical.Pool());
    block = pool.extent;
  }
  KEELSON_ASSIGN_OR_RETURN(int64_t capacity, DecideCapacity(range, record.capacity, block));
  if (range.required_bytes() <= record.capacity) return record;
  if (record.logical) {
    record.capacity = capacity;
    auto grown = context.logical.Grow(record);
    if (grown) return record;
    return grown.error().Is(Code::kTooManyRequests) ? Error(Code::kGone, grown.error().message())
                                                    : grown.error();
  }
  auto promise = context.space.Reserve(capacity - record.capacity, record.thick);
  if (!promise && promise.error().Is(Code::kTooManyRequests)) {
    return Error(Code::kGone, promise.error().message());
  }
  if (!promise) return promise.error();
  record.capacity = capacity;
  if (record.directory) {
    KEELSON_RETURN_IF_ERROR(HoldCapacity(context, record));
  } else {
    KEELSON_RETURN_IF_ERROR(GrowImage(context.store.Image(Kind::kVolume, record.id), capacity, record.thick));
  }
  KEELSON_RETURN_IF_ERROR(context.store.Put(record));
  log::Info("Volume expanded", {{"id", record.id}, {"bytes", record.capacity}});
  return record;
}

}  // namespace keelson::csi::local
