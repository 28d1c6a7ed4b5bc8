// Pods that wait between two steps of their binding: for volumes, or for a Permit plugin's word. However many
// there are, one thread looks after them.
#pragma once

#include <functional>
#include <list>
#include <stop_token>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

class WaitingRoom {  // thread safe
 public:
  explicit WaitingRoom(Clock& clock) : clock_(clock) {}

  struct Guest {
    // Whether the waiting is over. Asked when the guest comes and after each Wake(), by the thread of Run();
    // it must not block.
    std::function<bool()> over;
    SteadyTime deadline;
    // Called once, by that thread: in_time false, the deadline has come first. Must not block either.
    std::function<void(bool in_time)> leave;
  };
  void Enter(Guest guest);
  // Something has changed that guests may wait for. Cheap; may be called with any lock held.
  void Wake();
  // Until `stop`; who waits then is dropped.
  void Run(std::stop_token stop);

 private:
  // Who was there before the last Wake(), or what has come to its deadline.
  void LookAround();

  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::list<Guest> entering_ GUARDED_BY(mutex_);
  bool woken_ GUARDED_BY(mutex_) = false;
  std::list<Guest> guests_;  // of Run()'s thread
};

}  // namespace keelson::scheduler
