// Which EndpointSlices say what a Service's hand-written Endpoints say. Pure functions without I/O.
#pragma once

#include <vector>

#include "controlplane/controllers/endpoints/slice_plan.h"
#include "lib/api/types.h"

namespace keelson::controllers {

inline constexpr char kMirroringController[] = "endpointslicemirroring-controller.k8s.io";
inline constexpr int kMaxMirrored = 1000;  // addresses of a subset

// Not those that ask to be left out, and not those that hold a leader election.
bool ShouldMirror(const corev1::Endpoints& endpoints);

struct MirrorPlan : SlicePlan {
  int invalid = 0;  // addresses that are none
  int skipped = 0;  // addresses that are in no slice: these, and those beyond kMaxMirrored
};
// One slice for each list of ports and address family, whatever its size. Slices that are there are used
// again.
MirrorPlan PlanMirror(const corev1::Endpoints& endpoints, const std::vector<SlicePointer>& existing);

}  // namespace keelson::controllers
