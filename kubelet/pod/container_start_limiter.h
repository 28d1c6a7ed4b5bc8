// Limits how many containers and sandboxes the runtime creates and starts at the same time. A burst of pods takes
// as long with the limit as without it, and its first pods are ready long before its last. Containers go before
// sandboxes, so that pods that have begun get ready first.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <list>

#include "lib/base/mutex.h"

namespace keelson::kubelet {

class ContainerStartLimiter {  // thread safe
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind { kContainer, kSandbox };  // in the order of their turns

  // A call that holds its slot for longer than `slot_timeout` (a slow network plugin) no longer counts.
  explicit ContainerStartLimiter(size_t max_concurrent,
                                 std::chrono::milliseconds slot_timeout = std::chrono::seconds(3))
      : max_concurrent_(max_concurrent), slot_timeout_(slot_timeout) {}

  // For tests: blocks until `count` callers wait for a slot.
  void AwaitWaiting(size_t count);

  // Holds a slot while it lives. The constructor blocks until one is free.
  class Slot {
   public:
    Slot(ContainerStartLimiter& limiter, Kind kind) : limiter_(limiter), slot_(limiter.Acquire(kind)) {}
    ~Slot() { limiter_.Release(slot_); }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    ContainerStartLimiter& limiter_;
    const std::list<Time>::iterator slot_;
  };

 private:
  struct Waiter {
    CondVar turn;
    bool admitted = false;
    std::list<Time>::iterator slot;
  };
  std::list<Time>::iterator Acquire(Kind kind);  // blocks
  void Release(std::list<Time>::iterator slot);
  size_t FreeSlots(Time now) const KEELSON_REQUIRES(mutex_);
  void AdmitWaiters() KEELSON_REQUIRES(mutex_);

  const size_t max_concurrent_;
  const std::chrono::milliseconds slot_timeout_;
  Mutex mutex_;
  CondVar arrived_;
  std::list<Time> active_ KEELSON_GUARDED_BY(mutex_);  // when each slot was taken, oldest first
  std::array<std::deque<Waiter*>, 2> waiting_ KEELSON_GUARDED_BY(mutex_);  // by Kind
};

}  // namespace keelson::kubelet
