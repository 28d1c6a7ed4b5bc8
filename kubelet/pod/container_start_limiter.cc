#include "kubelet/pod/container_start_limiter.h"

#include <algorithm>
#include <iterator>

namespace keelson::kubelet {

size_t ContainerStartLimiter::FreeSlots(Time now) const {
  const auto young =
      std::find_if(active_.begin(), active_.end(), [&](Time since) { return now - since < slot_timeout_; });
  const auto count = static_cast<size_t>(std::distance(young, active_.end()));
  return count < max_concurrent_ ? max_concurrent_ - count : 0;
}

void ContainerStartLimiter::AdmitWaiters() {
  const Time now = std::chrono::steady_clock::now();
  for (size_t room = FreeSlots(now); room > 0; --room) {
    auto queue =
        std::find_if(waiting_.begin(), waiting_.end(), [](const auto& line) { return !line.empty(); });
    if (queue == waiting_.end()) return;
    Waiter* next = queue->front();
    queue->pop_front();
    next->slot = active_.insert(active_.end(), now);
    next->admitted = true;
    next->turn.notify_one();
  }
}

std::list<ContainerStartLimiter::Time>::iterator ContainerStartLimiter::Acquire(Kind kind) {
  MutexLock lock(mutex_);
  Waiter self;
  waiting_[static_cast<size_t>(kind)].push_back(&self);
  arrived_.notify_all();
  AdmitWaiters();
  // A slot that times out notifies no waiter.
  while (!self.admitted) {
    self.turn.wait_for(mutex_, slot_timeout_);
    if (!self.admitted) AdmitWaiters();
  }
  return self.slot;
}

void ContainerStartLimiter::AwaitWaiting(size_t count) {
  MutexLock lock(mutex_);
  while (waiting_[0].size() + waiting_[1].size() < count) arrived_.wait(mutex_);
}

void ContainerStartLimiter::Release(std::list<Time>::iterator slot) {
  MutexLock lock(mutex_);
  active_.erase(slot);
  AdmitWaiters();
}

}  // namespace keelson::kubelet
