#include "lib/client/backoff.h"

#include <algorithm>

namespace keelson::client {

bool SleepFor(Clock& clock, std::chrono::nanoseconds duration, std::stop_token stop) {
  Mutex mutex;
  CondVar cv;
  std::stop_callback wake(stop, [&] {
    MutexLock lock(mutex);
    cv.notify_all();
  });
  const SteadyTime deadline = clock.SteadyNow() + duration;
  MutexLock lock(mutex);
  while (!stop.stop_requested() && clock.SteadyNow() < deadline) clock.WaitUntil(mutex, cv, deadline);
  return !stop.stop_requested();
}

std::chrono::nanoseconds ReconnectBackoff::Next() {
  SteadyTime now = clock_.SteadyNow();
  if (now - last_ > kForget) Reset();
  last_ = now;
  double spread = std::uniform_real_distribution<double>(1.0, 2.0)(random_);
  auto delay = std::chrono::duration_cast<std::chrono::nanoseconds>(next_ * spread);
  next_ = std::min(next_ * 2, kMax);
  return std::min<std::chrono::nanoseconds>(delay, kMax);
}

}  // namespace keelson::client
