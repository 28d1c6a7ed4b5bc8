#include "lib/base/clock.h"

#include <algorithm>

namespace keelson {
namespace {

class RealClock : public Clock {
 public:
  WallTime Now() const override { return std::chrono::system_clock::now(); }
  SteadyTime SteadyNow() const override { return std::chrono::steady_clock::now(); }
  void WaitUntil(Mutex& mutex, CondVar& cv, SteadyTime deadline) override {
    if (deadline == SteadyTime::max()) {
      cv.wait(mutex);
    } else {
      cv.wait_until(mutex, deadline);
    }
  }
};

constexpr WallTime kFakeWallStart{std::chrono::seconds(1767225600)};  // 2026-01-01T00:00:00Z
constexpr SteadyTime kFakeSteadyStart{std::chrono::hours(1)};

}  // namespace

Clock& Clock::Real() {
  static RealClock* clock = new RealClock;
  return *clock;
}

WallTime FakeClock::Now() const {
  MutexLock lock(mutex_);
  return kFakeWallStart + std::chrono::duration_cast<WallTime::duration>(elapsed_);
}

SteadyTime FakeClock::SteadyNow() const {
  MutexLock lock(mutex_);
  return kFakeSteadyStart + elapsed_;
}

// Waiters poll every millisecond and are not notified: their mutex and condition variable may be gone by
// the time Advance() could touch them.
void FakeClock::WaitUntil(Mutex& mutex, CondVar& cv, SteadyTime deadline) {
  std::chrono::nanoseconds entered;
  {
    MutexLock lock(mutex_);
    if (kFakeSteadyStart + elapsed_ >= deadline) return;
    entered = elapsed_;
    waiters_.push_back({&mutex, &cv});
    waiters_changed_.notify_all();
  }
  cv.wait_for(mutex, std::chrono::milliseconds(1));
  MutexLock lock(mutex_);
  if (elapsed_ != entered) return;  // Advance() has removed us from waiters_
  auto it = std::find_if(waiters_.begin(), waiters_.end(),
                         [&](const Waiter& w) { return w.mutex == &mutex && w.cv == &cv; });
  if (it != waiters_.end()) waiters_.erase(it);
}

void FakeClock::Advance(std::chrono::nanoseconds by) {
  MutexLock lock(mutex_);
  elapsed_ += by;
  waiters_.clear();  // AwaitWaiters() counts only threads that have seen the new time
}

void FakeClock::AwaitWaiters(size_t count) {
  MutexLock lock(mutex_);
  while (waiters_.size() < count) waiters_changed_.wait(mutex_);
}

}  // namespace keelson
