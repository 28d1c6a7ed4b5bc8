// The queue of deferred resizes (KEP-1287).
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

class ResizeQueue {  // thread safe; decides about one resize at a time
 public:
  using PodPtr = Allocations::PodPtr;
  struct Dependencies {
    Allocations& allocations;
    std::function<std::optional<ResizeRefusal>(const corev1::Pod& wish, const corev1::Pod& granted)> refuse;
    std::function<void(const std::string& uid)> granted;  // a deferred resize is allocated
  };
  ResizeQueue(Dependencies dependencies, Clock& clock) : deps_(std::move(dependencies)), clock_(clock) {}

  // Asks for the resources of the pod's spec. nullopt: they are allocated, on disk; else the pod waits in the queue.
  // Resources that become free go to the first pods of the queue.
  std::optional<ResizeRefusal> Ask(const PodPtr& wish);
  void Leave(const std::string& uid);  // the pod needs no resize any more, or ends
  void Retry();                        // resources may have become free

 private:
  struct Waiting {
    PodPtr wish;
    WallTime since;
    ResizeRefusal refusal;
  };
  // Allocates whatever fits, and returns the pods' UIDs.
  std::vector<std::string> Pass() KEELSON_REQUIRES(mutex_);
  std::vector<std::string> InTurn() const KEELSON_REQUIRES(mutex_);
  void Tell(const std::vector<std::string>& granted, const std::string& except, const char* trigger);

  Dependencies deps_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Waiting> waiting_ KEELSON_GUARDED_BY(mutex_);  // by UID
};

// The queue's order: resizes that do not grow first, then higher priority, then Guaranteed before Burstable, then the
// longest wait. Pure.
struct ResizeTurn {
  bool grows = true;
  int32_t priority = 0;
  int qos = 0;  // lower comes first
  WallTime since;
};
ResizeTurn TurnOf(const corev1::Pod& wish, const corev1::Pod& granted, WallTime since);
bool ComesBefore(const ResizeTurn& a, const ResizeTurn& b);

}  // namespace keelson::kubelet
