#include "kubelet/pod/start_gate.h"

#include <algorithm>
#include <iterator>

namespace keelson::kubelet {

size_t StartGate::Room(Time now) const {
  const auto young =
      std::find_if(inside_.begin(), inside_.end(), [&](Time since) { return now - since < patience_; });
  const auto count = static_cast<size_t>(std::distance(young, inside_.end()));
  return count < at_once_ ? at_once_ - count : 0;
}

void StartGate::LetIn() {
  const Time now = std::chrono::steady_clock::now();
  for (size_t room = Room(now); room > 0; --room) {
    auto queue =
        std::find_if(waiting_.begin(), waiting_.end(), [](const auto& line) { return !line.empty(); });
    if (queue == waiting_.end()) return;
    Waiter* next = queue->front();
    queue->pop_front();
    next->place = inside_.insert(inside_.end(), now);
    next->let_in = true;
    next->turn.notify_one();
  }
}

std::list<StartGate::Time>::iterator StartGate::Enter(Kind kind) {
  MutexLock lock(mutex_);
  Waiter self;
  waiting_[static_cast<size_t>(kind)].push_back(&self);
  arrived_.notify_all();
  LetIn();
  // Those inside grow old without anybody's word.
  while (!self.let_in) {
    self.turn.wait_for(mutex_, patience_);
    if (!self.let_in) LetIn();
  }
  return self.place;
}

void StartGate::AwaitWaiting(size_t count) {
  MutexLock lock(mutex_);
  while (waiting_[0].size() + waiting_[1].size() < count) arrived_.wait(mutex_);
}

void StartGate::Leave(std::list<Time>::iterator place) {
  MutexLock lock(mutex_);
  inside_.erase(place);
  LetIn();
}

}  // namespace keelson::kubelet
