// A bucket of tokens that fills at a steady rate: who finds it empty is sent away, or comes again in time.
#pragma once

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson {

class RateLimit {  // thread safe
 public:
  RateLimit(double per_second, double burst, Clock& clock)
      : per_second_(per_second), burst_(burst), clock_(clock), tokens_(burst), filled_(clock.SteadyNow()) {}

  bool Allow() {
    MutexLock lock(mutex_);
    Fill();
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  // Until Allow() may say yes, if nobody else asks.
  std::chrono::nanoseconds Wait() {
    MutexLock lock(mutex_);
    Fill();
    return std::chrono::nanoseconds(static_cast<int64_t>(1e9 * std::max(0.0, 1 - tokens_) / per_second_) + 1);
  }

 private:
  void Fill() REQUIRES(mutex_) {
    const SteadyTime now = clock_.SteadyNow();
    tokens_ = std::min(burst_, tokens_ + per_second_ * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
  }

  const double per_second_, burst_;
  Clock& clock_;
  Mutex mutex_;
  double tokens_ GUARDED_BY(mutex_);
  SteadyTime filled_ GUARDED_BY(mutex_);
};

}  // namespace keelson
