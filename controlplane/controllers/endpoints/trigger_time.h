// Since when the endpoints of a Service have been out of date when they are written: readers measure from
// there how long a change takes to reach them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/endpoints/endpoint_pods.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

inline constexpr char kTriggerTime[] = "endpoints.kubernetes.io/last-change-trigger-time";

class TriggerTimes {  // thread safe
 public:
  // The earliest change since the last call for this Service: a pod's readiness, or the Service's creation,
  // which also is the answer of a first call. nullopt: nothing that has a time of its own has changed.
  std::optional<WallTime> Next(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods);
  void Forget(const std::string& key);

 private:
  struct State {
    WallTime created{};
    std::map<std::string, WallTime> pods;
  };
  Mutex mutex_;
  std::map<std::string, State> states_ GUARDED_BY(mutex_);
};

// Sets the annotation, or takes it away.
void SetTriggerTime(std::optional<WallTime> time, metav1::ObjectMeta& meta);

}  // namespace keelson::controllers
