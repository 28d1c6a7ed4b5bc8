// How many replicas one metric asks for. Pure functions without I/O.
//
// Values are in thousandths, as upstream counts them. Pods that say nothing or cannot be believed yet are put
// where they change the number least: idle when it would grow, at the target when it would shrink.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::controllers::podautoscaler {

struct PodValue {
  WallTime time;
  std::chrono::nanoseconds window{};
  int64_t milli = 0;
};
using PodValues = std::map<std::string, PodValue>;  // by name of the pod
using Pods = std::vector<std::shared_ptr<const corev1::Pod>>;

// How far the ratio of what is to what should be may be off 1 before anything is done.
struct Tolerances {
  double down = 0.1, up = 0.1;
  bool Within(double ratio) const { return 1.0 - down <= ratio && ratio <= 1.0 + up; }
};

// What a proposal is made for.
struct Look {
  const Pods& pods;          // all that the target selects
  int32_t current_replicas;  // spec.replicas of the target
  Tolerances tolerances;
  WallTime now;
  // After a pod's start its CPU counts while it is ready.
  std::chrono::milliseconds cpu_initialization_period{300000};
  std::chrono::milliseconds initial_readiness_delay{30000};  // not ready since before then: never has been
};

struct Proposal {
  int32_t replicas = 0;
  int32_t percent = 0;  // of the requests, by ByUtilization() only
  int64_t milli = 0;    // average or sum, as the target is
};

// A percentage of what the pods request. `container` empty: all of their containers.
Result<Proposal> ByUtilization(const Look& look, PodValues values, const std::string& resource,
                               const std::string& container, int32_t target_percent);
// An average value of the pods. `resource` "cpu" has pods that begin left out.
Result<Proposal> ByAverage(const Look& look, PodValues values, const std::string& resource,
                           int64_t target_milli);
// One value that all pods share; it grows and shrinks with the pods that are ready.
Result<Proposal> ByValue(const Look& look, int64_t milli, int64_t target_milli);
// One value divided by the number of pods (`status_replicas`).
Proposal ByValuePerPod(const Look& look, int32_t status_replicas, int64_t milli, int64_t target_milli);

}  // namespace keelson::controllers::podautoscaler
