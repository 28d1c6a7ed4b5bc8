// The data directory's space: what is free, and what volumes have been promised of it.
#pragma once

#include <cstdint>
#include <utility>

#include "csi/local/model/config.h"
#include "csi/local/store/store.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::csi::local {

// Thread safe.
class Space {
 public:
  Space(const Config& config, const Store& store) : config_(config), store_(store) {}

  // Space of a volume that is being made; ends when its record counts instead, or when it failed.
  class Promise {
   public:
    Promise(Promise&& other) noexcept : space_(std::exchange(other.space_, nullptr)), bytes_(other.bytes_) {}
    Promise& operator=(Promise&&) = delete;
    ~Promise();

   private:
    friend class Space;
    Promise(Space& space, int64_t bytes) : space_(&space), bytes_(bytes) {}
    Space* space_;
    int64_t bytes_;
  };

  // What a new volume may have at most.
  Result<int64_t> Available(bool thick) const;
  // kTooManyRequests (RESOURCE_EXHAUSTED): there is not as much.
  Result<Promise> Reserve(int64_t bytes, bool thick);

 private:
  Result<int64_t> AvailableLocked(bool thick) const KEELSON_REQUIRES(mutex_);

  const Config& config_;
  const Store& store_;
  mutable Mutex mutex_;
  int64_t reserved_ KEELSON_GUARDED_BY(mutex_) = 0;
};

}  // namespace keelson::csi::local
