#include "controlplane/scheduler/framework/waiting_room.h"

#include <algorithm>

namespace keelson::scheduler {

void WaitingRoom::Enter(Guest guest) {
  MutexLock lock(mutex_);
  entering_.push_back(std::move(guest));
  woken_ = true;
  changed_.notify_all();
}

void WaitingRoom::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void WaitingRoom::LookAround() {
  for (auto guest = guests_.begin(); guest != guests_.end();) {
    const bool in_time = guest->over();
    if (!in_time && clock_.SteadyNow() < guest->deadline) {
      ++guest;
      continue;
    }
    guest->leave(in_time);
    guest = guests_.erase(guest);
  }
}

void WaitingRoom::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { Wake(); });
  while (!stop.stop_requested()) {
    LookAround();
    SteadyTime next = SteadyTime::max();
    for (const Guest& guest : guests_) next = std::min(next, guest.deadline);
    MutexLock lock(mutex_);
    // Nobody to ask: what changes is no news.
    while (!stop.stop_requested() && entering_.empty() && (!woken_ || guests_.empty()) &&
           clock_.SteadyNow() < next)
      clock_.WaitUntil(mutex_, changed_, next);
    woken_ = false;
    guests_.splice(guests_.end(), entering_);
  }
  guests_.clear();
  MutexLock lock(mutex_);
  entering_.clear();
}

}  // namespace keelson::scheduler
