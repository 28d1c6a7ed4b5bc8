// Whose turn it is when room comes for pods that wish for more than there was (KEP-1287).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kubelet/resize/resize_plan.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class ResizeQueue {  // thread safe; one wish is judged at a time, by what those before it have got
 public:
  using PodPtr = Allocations::PodPtr;
  struct Dependencies {
    Allocations& allocations;
    std::function<std::optional<ResizeRefusal>(const corev1::Pod& wish, const corev1::Pod& granted)> refuse;
    std::function<void(const std::string& uid)> granted;  // a pod that has waited may go on
  };
  ResizeQueue(Dependencies dependencies, Clock& clock) : deps_(std::move(dependencies)), clock_(clock) {}

  // What the pod wishes for now. nullopt: granted, on disk; else it waits from here on. What it gives back,
  // and room that nobody told of, goes to those who are first.
  std::optional<ResizeRefusal> Ask(const PodPtr& wish);
  void Leave(const std::string& uid);  // it has what it wishes for, or ends
  void Retry();                        // there may be room

 private:
  struct Waiting {
    PodPtr wish;
    WallTime since;
    ResizeRefusal refusal;
  };
  // Grants whatever can be granted; UIDs of whom.
  std::vector<std::string> Pass() REQUIRES(mutex_);
  std::vector<std::string> InTurn() const REQUIRES(mutex_);
  void Tell(const std::vector<std::string>& granted, const std::string& except, const char* trigger);

  Dependencies deps_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Waiting> waiting_ GUARDED_BY(mutex_);  // by UID
};

// Pods that ask for no more than they have go first, then those of higher priority, then Guaranteed before
// Burstable, then those that wait longest. Pure.
struct ResizeTurn {
  bool grows = true;
  int32_t priority = 0;
  int qos = 0;  // the less, the earlier
  WallTime since;
};
ResizeTurn TurnOf(const corev1::Pod& wish, const corev1::Pod& granted, WallTime since);
bool ComesBefore(const ResizeTurn& a, const ResizeTurn& b);

}  // namespace keelson::kubelet
