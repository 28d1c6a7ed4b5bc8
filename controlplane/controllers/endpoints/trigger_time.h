// The endpoints-last-change-trigger-time annotation: the time of the change that led to a write. Clients
// measure the propagation delay from it.
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
  // Returns the earliest change since the last call for this Service: a pod's readiness or the Service's
  // creation. The first call returns the creation time. Nullopt: no timed change.
  std::optional<WallTime> Next(const corev1::Service& service, const std::vector<EndpointPodPointer>& pods);
  void Forget(const std::string& key);

 private:
  struct State {
    WallTime created{};
    std::map<std::string, WallTime> pods;
  };
  Mutex mutex_;
  std::map<std::string, State> states_ KEELSON_GUARDED_BY(mutex_);
};

// Sets the annotation, or removes it for nullopt.
void SetTriggerTime(std::optional<WallTime> time, metav1::ObjectMeta& meta);

}  // namespace keelson::controllers
