#include "csi/local/volumes/space.h"

#include <algorithm>

#include "csi/local/host/filesystem.h"
#include "csi/local/host/image.h"
#include "csi/local/host/project_quota.h"
#include "csi/local/model/requests.h"

namespace keelson::csi::local {

Space::Promise::~Promise() {
  if (!space_) return;
  MutexLock lock(space_->mutex_);
  space_->reserved_ -= bytes_;
}

Result<int64_t> Space::AvailableLocked(bool thick) const {
  KEELSON_ASSIGN_OR_RETURN(Usage usage, UsageOf(store_.directory()));
  int64_t promised = reserved_, taken = 0;
  for (const VolumeRecord& record : store_.Volumes()) {
    if (record.logical) continue;  // in a pool of its own
    if (record.directory) {
      auto use = ProjectUseOf(store_.directory(), record.project);
      promised += record.capacity;
      if (record.project != 0 && use) taken += std::min(use->used, record.capacity);
      continue;
    }
    auto size = SizeOf(store_.Image(Kind::kVolume, record.id));
    if (!size) continue;  // being removed, or lost: it takes nothing
    promised += record.capacity;
    taken += std::min(size->taken, record.capacity);
  }
  // A thick volume takes its space at once. It may take what thin ones have been promised, as their writes may.
  if (thick) return std::max<int64_t>(0, usage.available - reserved_);
  return ThinCapacity(usage.available, config_.overprovision_ratio, promised, taken);
}

Result<int64_t> Space::Available(bool thick) const {
  MutexLock lock(mutex_);
  return AvailableLocked(thick);
}

Result<Space::Promise> Space::Reserve(int64_t bytes, bool thick) {
  MutexLock lock(mutex_);
  KEELSON_ASSIGN_OR_RETURN(int64_t available, AvailableLocked(thick));
  if (bytes > available) {
    return Error(Code::kTooManyRequests, "not enough space: " + std::to_string(bytes) +
                                             " bytes are wanted, " + std::to_string(available) +
                                             " are available");
  }
  reserved_ += bytes;
  return Promise(*this, bytes);
}

}  // namespace keelson::csi::local
