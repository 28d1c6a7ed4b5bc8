// The order in which controllers delete active pods (upstream's ActivePodsWithRanks).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

using PodPointers = std::vector<std::shared_ptr<const corev1::Pod>>;

// Pending ranks before Unknown before Running.
int PhaseRank(const corev1::Pod& pod);
// The highest restart count of a container: of regular containers, and of sidecars.
std::pair<int32_t, int32_t> MaxContainerRestarts(const corev1::Pod& pod);
// When the pod became ready, in seconds since the epoch; 0 when it is not ready.
int64_t PodReadyTime(const corev1::Pod& pod);

// Returns the `count` pods to delete first (upstream's ActivePodsWithRanks). The criteria, in order:
// unassigned before assigned; Pending before Unknown before Running; not ready before ready; lower
// controller.kubernetes.io/pod-deletion-cost; on a node with more pods of `related` (all pods of the same
// Deployment); ready for a shorter time; more restarts (sidecars last); newer. Times are compared by order of
// magnitude (LogarithmicScaleDown), and UIDs break ties, so that the choice among pods of about the same age
// is spread.
PodPointers PodsToDelete(PodPointers pods, const PodPointers& related, size_t count, WallTime now);

// The ages of the ready pods in `chosen`, divided by the age of the youngest ready pod; for metrics.
std::vector<double> AgeRatios(const PodPointers& pods, const PodPointers& chosen, WallTime now);

}  // namespace keelson::controllers
