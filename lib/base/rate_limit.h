// A bucket of tokens that fills at a steady rate: who finds it empty is sent away.
#pragma once

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::podresources {

class RateLimit {  // thread safe
 public:
  RateLimit(double per_second, double burst, Clock& clock)
      : per_second_(per_second), burst_(burst), clock_(clock), tokens_(burst), filled_(clock.SteadyNow()) {}

  bool Allow() {
    MutexLock lock(mutex_);
    SteadyTime now = clock_.SteadyNow();
    tokens_ = std::min(burst_, tokens_ + per_second_ * std::chrono::duration<double>(now - filled_).count());
    filled_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  const double per_second_, burst_;
  Clock& clock_;
  Mutex mutex_;
  double tokens_ GUARDED_BY(mutex_);
  SteadyTime filled_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet::podresources
