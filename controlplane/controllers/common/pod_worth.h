// What pods are worth to who removes some of them.
#pragma once

#include <cstdint>
#include <utility>

#include "lib/api/types.h"

namespace keelson::controllers {

// Pending before Unknown before Running.
int PhaseRank(const corev1::Pod& pod);
// The most that one container was restarted: of those that run beside each other, and of sidecars.
std::pair<int32_t, int32_t> MaxRestarts(const corev1::Pod& pod);
// Seconds since the epoch when the pod became ready; 0 when it is not.
int64_t ReadySince(const corev1::Pod& pod);

}  // namespace keelson::controllers
