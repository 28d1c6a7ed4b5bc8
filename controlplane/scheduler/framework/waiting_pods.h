// The waiting pods: those whose binding cycle waits for a Permit plugin or for volumes. One thread looks after
// all of them.
#pragma once

#include <functional>
#include <list>
#include <stop_token>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::scheduler {

struct WaitingPod {
  // Whether the pod need not wait any longer. Called by the thread of Run(), first when the pod is added and
  // then after each Wake(); must not block.
  std::function<bool()> done;
  SteadyTime deadline;
  // Called once, by that thread, when the pod stops waiting: in_time is false when the deadline came first.
  // Must not block.
  std::function<void(bool in_time)> finish;
};

class WaitingPods {  // thread safe
 public:
  explicit WaitingPods(Clock& clock) : clock_(clock) {}

  void Add(WaitingPod pod);
  // Has all pods checked: something that they may wait for has changed. Cheap; may be called with any lock
  // held.
  void Wake();
  // Serves the pods until `stop`. Those that wait then are dropped without a call of finish.
  void Run(std::stop_token stop);

 private:
  // Finishes the pods that are done or past their deadline.
  void Check();

  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::list<WaitingPod> added_ KEELSON_GUARDED_BY(mutex_);
  bool woken_ KEELSON_GUARDED_BY(mutex_) = false;
  std::list<WaitingPod> pods_;  // owned by the thread of Run()
};

}  // namespace keelson::scheduler
