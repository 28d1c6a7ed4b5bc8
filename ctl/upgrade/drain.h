// Takes pods off a node and keeps others away, as `kubectl drain` does: by the Eviction API, which heeds
// PodDisruptionBudgets. Pods of DaemonSets and static pods stay.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

struct DrainOptions {
  bool force = false;              // evict pods without a controller too, which nothing makes anew
  bool delete_empty_dirs = false;  // evict pods whose emptyDir volumes have data that is lost
  std::chrono::seconds timeout{300};
};

// ---- without I/O ----

struct EvictedPod {
  std::string ns, name, uid;
};
struct DrainPlan {
  std::vector<EvictedPod> evicted;
  std::vector<std::string> warnings, errors;  // in kubectl's words
};
// `pods`: all of the node.
DrainPlan PlanDrain(const std::vector<corev1::Pod>& pods, const DrainOptions& options);

// ---- with it ----

// Sets spec.unschedulable; returns its former value.
Result<bool> SetUnschedulable(const client::RestClient& api, const std::string& node, bool value);

// Evicts and waits until the pods are gone. kInvalid: pods that `options` protect. kTimeout: names the pods that are left,
// and why the API has refused to evict them.
Result<> EvictPods(const client::RestClient& api, const std::string& node, const DrainOptions& options,
                   std::ostream& out, Clock& clock);

}  // namespace keelson::ctl
