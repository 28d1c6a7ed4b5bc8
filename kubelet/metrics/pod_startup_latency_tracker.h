// Measures how long pods take to start, as the API server shows it: kubelet_pod_start_*.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class PodStartupLatencyTracker {  // thread safe
 public:
  explicit PodStartupLatencyTracker(Clock& clock = Clock::Real());

  // The pod as the watch has it now. Pods that an earlier kubelet has started are not measured.
  void ObservePodOnWatch(const corev1::Pod& pod);
  // An image was pulled for the pod; kubelet_pod_start_sli_duration_seconds leaves that time out.
  void RecordImagePull(const std::string& uid, std::chrono::nanoseconds took);
  // The pod is gone.
  void DeletePod(const std::string& uid);

 private:
  struct Start {
    SteadyTime seen;
    std::chrono::nanoseconds pulling{0};
    bool runs = false, observed = false;
  };

  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Start> starts_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
