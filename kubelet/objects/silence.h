// An API server that does not answer is not asked again for a while by those who know a good enough answer.
#pragma once

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// The API server is away or out of breath: what was read before is the best there is.
inline bool NoAnswer(const Error& error) {
  return error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) || error.Is(Code::kTooManyRequests) ||
         error.Is(Code::kInternal);
}

class Silence {  // thread safe
 public:
  explicit Silence(Clock& clock) : clock_(clock) {}
  void Heard() {
    MutexLock lock(mutex_);
    until_ = SteadyTime();
  }
  void Failed(const Error& error) {
    if (!NoAnswer(error)) return;
    MutexLock lock(mutex_);
    until_ = clock_.SteadyNow() + kLength;
  }
  bool Lasts() const {
    MutexLock lock(mutex_);
    return clock_.SteadyNow() < until_;
  }

 private:
  static constexpr std::chrono::seconds kLength{10};
  Clock& clock_;
  mutable Mutex mutex_;
  SteadyTime until_ GUARDED_BY(mutex_){};
};

}  // namespace keelson::kubelet
