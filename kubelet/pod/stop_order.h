// Who ends before whom when a pod goes: sidecars outlive what was started after them.
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

class StopOrder {  // thread safe
 public:
  // `running` are the names of the containers that are being stopped.
  StopOrder(const corev1::PodSpec& spec, const std::set<std::string>& running, Clock& clock);

  // Blocks until it is the container's turn, for `most` at most.
  void Await(const std::string& container, std::chrono::seconds most, std::stop_token stop);
  void Ended(const std::string& container);

 private:
  Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::set<std::string>> before_ GUARDED_BY(mutex_);  // sidecar -> who has to end first
};

}  // namespace keelson::kubelet
