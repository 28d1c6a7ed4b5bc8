// What a ReplicaSet's pods say: pure functions without I/O.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

using PodPointers = std::vector<std::shared_ptr<const corev1::Pod>>;

// The `count` pods to delete first. In order of weight: without a node before with one; Pending before
// Unknown before Running; not ready before ready; lower controller.kubernetes.io/pod-deletion-cost; on a node
// with more pods of `related` (all pods of the same Deployment); ready for less time; restarted more often
// (sidecars last); younger. Times are compared by their order of magnitude, so that the choice among pods of
// about the same age is spread (by UID).
PodPointers PodsToDelete(PodPointers pods, const PodPointers& related, size_t count, WallTime now);

// How many times as old as the youngest ready pod those ready pods are that are chosen to go; for metrics.
std::vector<double> AgeRatios(const PodPointers& pods, const PodPointers& chosen, WallTime now);

struct ReplicaCounts {
  int32_t replicas = 0, fully_labeled = 0, ready = 0, available = 0, terminating = 0;
  // When the next ready pod becomes available; nullopt when none will by itself.
  std::optional<std::chrono::nanoseconds> next_available;
};
ReplicaCounts CountReplicas(const appsv1::ReplicaSet& set, const PodPointers& active, int terminating,
                            WallTime now);

// The status after a sync; `failure` is what kept replicas from being created or deleted (null: nothing did),
// `diff` the number of pods too many (negative: too few) before it.
appsv1::ReplicaSetStatus NewStatus(const appsv1::ReplicaSet& set, const ReplicaCounts& counts,
                                   const std::string* failure, int64_t diff, WallTime now);

// Calls create(n) with batches of 1, 2, 4, ... until `count` have been made or one batch had failures;
// create returns how many of its n succeeded. Returns the successes: when the quota is used up or the
// template is refused, a thousand pods fail as one.
int SlowStart(int count, const std::function<int(int)>& create);

}  // namespace keelson::controllers
