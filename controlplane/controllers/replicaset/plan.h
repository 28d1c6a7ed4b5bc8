// The replica counts and the status of a ReplicaSet. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "controlplane/controllers/common/active_pods.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

struct ReplicaCounts {
  int32_t replicas = 0, fully_labeled = 0, ready = 0, available = 0, terminating = 0;
  // Time until the next ready pod becomes available; nullopt: none.
  std::optional<std::chrono::nanoseconds> next_available;
};
ReplicaCounts CountReplicas(const appsv1::ReplicaSet& set, const PodPointers& active, int terminating,
                            WallTime now);

// Returns the status after a sync. `failure`: the first failed create or delete (null: none). `diff`: surplus
// pods before the sync (negative: missing pods).
appsv1::ReplicaSetStatus NewStatus(const appsv1::ReplicaSet& set, const ReplicaCounts& counts,
                                   const std::string* failure, int64_t diff, WallTime now);

}  // namespace keelson::controllers
