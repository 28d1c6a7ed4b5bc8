// A sleep that a stop request ends early.
#pragma once

#include <chrono>
#include <stop_token>

#include "lib/base/clock.h"

namespace keelson {

// Waits for `time` to pass. False: `stop` was requested first.
inline bool Pause(Clock& clock, std::chrono::nanoseconds time, std::stop_token stop) {
  Mutex mutex;
  CondVar cv;
  std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    cv.notify_all();
  });
  const SteadyTime until = clock.SteadyNow() + std::chrono::duration_cast<SteadyTime::duration>(time);
  MutexLock lock(mutex);
  while (!stop.stop_requested() && clock.SteadyNow() < until) clock.WaitUntil(mutex, cv, until);
  return !stop.stop_requested();
}

}  // namespace keelson
