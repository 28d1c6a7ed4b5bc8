// Waits after a failed operation on a volume, as upstream's volume manager has them: 500 ms, doubled up to 2 min 2 s.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::csi {

class OperationBackoff {  // thread safe
 public:
  explicit OperationBackoff(Clock& clock) : clock_(clock) {}

  // The last failure of the operation `key`, while its wait lasts.
  std::optional<Error> Held(const std::string& key) const {
    MutexLock lock(mutex_);
    auto it = failures_.find(key);
    if (it == failures_.end() || clock_.SteadyNow() >= it->second.until) return std::nullopt;
    return it->second.error;
  }
  // Takes note of how the operation ended, and returns that. One that the kubelet itself ended does not count.
  template <typename T>
  Result<T> Note(const std::string& key, Result<T> result) {
    MutexLock lock(mutex_);
    if (result) {
      failures_.erase(key);
    } else if (!result.error().Is(Code::kCancelled)) {
      auto [it, fresh] = failures_.try_emplace(key, Failure{result.error(), kFirst, {}});
      if (!fresh) it->second = {result.error(), std::min(2 * it->second.wait, kMost), {}};
      it->second.until = clock_.SteadyNow() + it->second.wait;
    }
    return result;
  }
  void Forget(const std::string& key) {
    MutexLock lock(mutex_);
    failures_.erase(key);
  }

 private:
  static constexpr std::chrono::milliseconds kFirst{500}, kMost{122'000};
  struct Failure {
    Error error;
    std::chrono::milliseconds wait;
    SteadyTime until;
  };
  Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Failure> failures_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::csi
