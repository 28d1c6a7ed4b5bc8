// Remembers that the API server did not answer: readers that have a cached object use it for a while instead of
// asking again.
#pragma once

#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// Whether the API server is away or overloaded, so that a cached object is the best answer.
inline bool NoAnswer(const Error& error) {
  return error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) || error.Is(Code::kTooManyRequests) ||
         error.Is(Code::kInternal);
}

class ApiServerBackoff {  // thread safe
 public:
  // `clock` has to outlive it.
  explicit ApiServerBackoff(Clock& clock) : clock_(clock) {}
  // A request was answered: ends the back-off.
  void Succeeded() {
    MutexLock lock(mutex_);
    until_ = SteadyTime();
  }
  // A request failed. Starts the back-off if it was not answered; other errors are answers.
  void Failed(const Error& error) {
    if (!NoAnswer(error)) return;
    MutexLock lock(mutex_);
    until_ = clock_.SteadyNow() + kDuration;
  }
  // Whether readers should use what they have cached.
  bool Active() const {
    MutexLock lock(mutex_);
    return clock_.SteadyNow() < until_;
  }

 private:
  static constexpr std::chrono::seconds kDuration{10};
  Clock& clock_;
  mutable Mutex mutex_;
  SteadyTime until_ KEELSON_GUARDED_BY(mutex_){};
};

}  // namespace keelson::kubelet
