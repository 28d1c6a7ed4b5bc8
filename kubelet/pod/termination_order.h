// The order in which the containers of a pod terminate: sidecars outlive what was started after them (KEP-753).
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class TerminationOrdering {  // thread safe
 public:
  // `running` are the names of the containers that are being stopped.
  TerminationOrdering(const corev1::PodSpec& spec, const std::set<std::string>& running, Clock& clock);

  // Blocks until all containers that have to terminate before `container` have done so, until `most` has
  // passed, or `stop`.
  void WaitForTurn(const std::string& container, std::chrono::seconds most, std::stop_token stop);
  // `container` has ended, or StopContainer has given up on it: others need not wait for it.
  void ContainerTerminated(const std::string& container);

 private:
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::set<std::string>> before_
      KEELSON_GUARDED_BY(mutex_);  // sidecar -> those that terminate first
};

}  // namespace keelson::kubelet
