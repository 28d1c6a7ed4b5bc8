// Time as a dependency. Code that waits or stamps takes a Clock&; tests move a FakeClock.
#pragma once

#include <chrono>
#include <vector>

#include "lib/base/mutex.h"

namespace keelson {

using WallTime = std::chrono::system_clock::time_point;
using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;          // for stamps that people and other machines read
  virtual SteadyTime SteadyNow() const = 0;  // for intervals and deadlines
  // Waits on `cv` with `mutex` held until notified or `deadline` has come; returns early at will, so
  // callers loop on their condition.
  virtual void WaitUntil(Mutex& mutex, CondVar& cv, SteadyTime deadline) = 0;

  static Clock& Real();
};

// Both times start at a fixed instant and move only by Advance(). Waiters see it within a millisecond.
class FakeClock : public Clock {
 public:
  WallTime Now() const override;
  SteadyTime SteadyNow() const override;
  void WaitUntil(Mutex& mutex, CondVar& cv, SteadyTime deadline) override;

  void Advance(std::chrono::nanoseconds by);
  // Blocks until `count` threads are inside WaitUntil and have seen the present time.
  void AwaitWaiters(size_t count);

 private:
  mutable Mutex mutex_;
  CondVar waiters_changed_;
  std::chrono::nanoseconds elapsed_ KEELSON_GUARDED_BY(mutex_){0};
  struct Waiter {
    Mutex* mutex;
    CondVar* cv;
  };
  std::vector<Waiter> waiters_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson
