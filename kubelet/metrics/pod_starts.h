// How long pods take to start, as the API shows it: kubelet_pod_start_*. Thread safe.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodStarts {
 public:
  explicit PodStarts(Clock& clock = Clock::Real());

  // The pod as the API has it now. Pods that a kubelet before this one has begun with are not measured.
  void Observed(const corev1::Pod& pod);
  // An image was pulled for it, which is not counted against the start.
  void Pulled(const std::string& uid, std::chrono::nanoseconds took);
  void Forget(const std::string& uid);

 private:
  struct Start {
    SteadyTime seen;
    std::chrono::nanoseconds pulling{0};
    bool runs = false, told = false;
  };

  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Start> starts_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
