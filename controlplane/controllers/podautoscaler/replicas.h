// The replicas that one metric recommends (upstream's replica_calculator.go). Pure functions.
//
// Values are in thousandths, as upstream counts them. Pods without metrics, or too young for them, are
// assumed to damp the change: idle when scaling up, at the target when scaling down.
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

// How far the usage ratio may differ from 1 without scaling.
struct Tolerances {
  double down = 0.1, up = 0.1;
  bool Within(double ratio) const { return 1.0 - down <= ratio && ratio <= 1.0 + up; }
};

// The input of a calculation.
struct Look {
  const Pods& pods;          // all pods that the target selects
  int32_t current_replicas;  // spec.replicas of the target
  Tolerances tolerances;
  WallTime now;
  // For this long after a pod's start its CPU counts only while the pod is ready.
  std::chrono::milliseconds cpu_initialization_period{300000};
  // A pod that is not ready since within this time after its start was never ready
  std::chrono::milliseconds initial_readiness_delay{30000};
};

struct Proposal {
  int32_t replicas = 0;
  int32_t percent = 0;  // of the requests; set by ByUtilization() only
  int64_t milli = 0;    // average or sum, depending on the target type
};

// Targets a percentage of the pods' requests. `container` empty: sums all containers.
Result<Proposal> ByUtilization(const Look& look, PodValues values, const std::string& resource,
                               const std::string& container, int32_t target_percent);
// Targets an average value per pod. For `resource` "cpu" starting pods are left out.
Result<Proposal> ByAverage(const Look& look, PodValues values, const std::string& resource,
                           int64_t target_milli);
// Targets one value for the whole workload; scales in proportion to the ready pods.
Result<Proposal> ByValue(const Look& look, int64_t milli, int64_t target_milli);
// Targets one value divided by the number of pods (`status_replicas`).
Proposal ByValuePerPod(const Look& look, int32_t status_replicas, int64_t milli, int64_t target_milli);

}  // namespace keelson::controllers::podautoscaler
