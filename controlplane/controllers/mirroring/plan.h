// Computes the EndpointSlices that mirror a Service's manual Endpoints. Pure functions.
#pragma once

#include <vector>

#include "controlplane/controllers/endpoints/slice_plan.h"
#include "lib/api/types.h"

namespace keelson::controllers {

inline constexpr char kMirroringController[] = "endpointslicemirroring-controller.k8s.io";
inline constexpr int kMaxMirrored = 1000;  // addresses per subset, by default

// False with the label skip-mirror, and for Endpoints that hold a leader election record.
bool ShouldMirror(const corev1::Endpoints& endpoints);

struct MirrorPlan : SlicePlan {
  int invalid = 0;  // addresses that are not valid IP addresses
  int skipped = 0;  // addresses in no slice: invalid ones, and those beyond the maximum
};
// One slice per list of ports and address family, of any size. Reuses existing slices.
MirrorPlan PlanMirror(const corev1::Endpoints& endpoints, const std::vector<SlicePointer>& existing,
                      int max_mirrored = kMaxMirrored);

}  // namespace keelson::controllers
