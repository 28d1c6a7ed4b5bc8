#include "controlplane/scheduler/framework/waiting_pods.h"

#include <algorithm>

namespace keelson::scheduler {

void WaitingPods::Add(WaitingPod pod) {
  MutexLock lock(mutex_);
  added_.push_back(std::move(pod));
  woken_ = true;
  changed_.notify_all();
}

void WaitingPods::Wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void WaitingPods::Check() {
  for (auto pod = pods_.begin(); pod != pods_.end();) {
    const bool in_time = pod->done();
    if (!in_time && clock_.SteadyNow() < pod->deadline) {
      ++pod;
      continue;
    }
    pod->finish(in_time);
    pod = pods_.erase(pod);
  }
}

void WaitingPods::Run(std::stop_token stop) {
  const std::stop_callback wake(stop, [this] { Wake(); });
  while (!stop.stop_requested()) {
    Check();
    SteadyTime next = SteadyTime::max();
    for (const WaitingPod& pod : pods_) next = std::min(next, pod.deadline);
    MutexLock lock(mutex_);
    // A Wake() without waiting pods is ignored.
    while (!stop.stop_requested() && added_.empty() && (!woken_ || pods_.empty()) &&
           clock_.SteadyNow() < next) {
      clock_.WaitUntil(mutex_, changed_, next);
    }
    woken_ = false;
    pods_.splice(pods_.end(), added_);
  }
  pods_.clear();
  MutexLock lock(mutex_);
  added_.clear();
}

}  // namespace keelson::scheduler
