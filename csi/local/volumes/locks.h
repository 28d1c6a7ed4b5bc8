// Which volumes, snapshots and groups calls are working on. A second call does not wait: it is refused as CSI demands, and
// the caller repeats it.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::csi::local {

// Thread safe. Outlives what it gives out.
class Locks {
 public:
  // Until its end.
  class Held {
   public:
    Held(Held&& other) noexcept : locks_(std::exchange(other.locks_, nullptr)), id_(std::move(other.id_)) {}
    Held& operator=(Held&& other) noexcept;
    ~Held() { Release(); }

   private:
    friend class Locks;
    Held(Locks& locks, std::string id) : locks_(&locks), id_(std::move(id)) {}
    void Release();
    Locks* locks_;
    std::string id_;
  };

  // kUnavailable: another call has it (ABORTED).
  Result<Held> Exclusive(const std::string& id);
  // Several calls may read one thing: restore from one snapshot.
  Result<Held> Shared(const std::string& id);

 private:
  void Release(const std::string& id);

  static constexpr int kExclusive = -1;
  Mutex mutex_;
  std::map<std::string, int> held_ KEELSON_GUARDED_BY(mutex_);  // kExclusive, or how many share it
};

}  // namespace keelson::csi::local
