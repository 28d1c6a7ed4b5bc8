// A token bucket that fills at a steady rate. A caller that finds it empty gives up, or tries again after
// Wait().
#pragma once

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson {

class RateLimit {  // thread safe
 public:
  RateLimit(double per_second, double burst, Clock& clock)
      : per_second_(per_second), burst_(burst), clock_(clock), tokens_(burst), filled_(clock.SteadyNow()) {}

  // Takes a token. False: the bucket is empty.
  bool Allow() {
    MutexLock lock(mutex_);
    Fill();
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // How long until Allow() may succeed, if no other caller takes the token first.
  std::chrono::nanoseconds Wait() {
    MutexLock lock(mutex_);
    Fill();
    return std::chrono::nanoseconds(static_cast<int64_t>(1e9 * std::max(0.0, 1 - tokens_) / per_second_) + 1);
  }

 private:
  void Fill() KEELSON_REQUIRES(mutex_) {
    const SteadyTime now = clock_.SteadyNow();
    tokens_ = std::min(burst_, tokens_ + per_second_ * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
  }

  const double per_second_, burst_;
  Clock& clock_;
  Mutex mutex_;
  double tokens_ KEELSON_GUARDED_BY(mutex_);
  SteadyTime filled_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson
