// To which size a volume is expanded next: external-resizer's rules with RecoverVolumeExpansionFailure. Pure.
//
// A claim may ask for less again after an expansion has failed, down to what it has. So the size that the driver was
// asked for stands in status.allocatedResources before the call, and how far that is in status.allocatedResourceStatuses.
// A size that the driver may be at work on is finished before another one is asked for.
#pragma once

#include <optional>
#include <string>

#include "csi/controller/model/wire.h"
#include "lib/api/quantity.h"

namespace keelson::csi::controller {

inline constexpr char kControllerResizeInProgress[] = "ControllerResizeInProgress";
inline constexpr char kControllerResizeInfeasible[] = "ControllerResizeInfeasible";
inline constexpr char kNodeResizePending[] = "NodeResizePending";
inline constexpr char kNodeResizeInProgress[] = "NodeResizeInProgress";
inline constexpr char kNodeResizeInfeasible[] = "NodeResizeInfeasible";

// status.capacity, spec.resources.requests, status.allocatedResources, spec.capacity of a volume.
api::Amount StorageOf(const google::protobuf::Map<std::string, Quantity>& amounts);

// Whether the claim is bound and asks for more than it has.
bool WantsMore(const Claim& claim);

struct ExpandPlan {
  api::Amount size;
  bool new_size = true;  // it is not yet the one in allocatedResources
};

// nullopt: there is nothing to do for the controller, or the node has to finish first. `control_plane`: the driver expands
// volumes by ControllerExpandVolume. `failed`: this process has seen the attempt before fail for good.
std::optional<ExpandPlan> PlanExpansion(const Claim& claim, const Volume& volume, bool control_plane,
                                        bool failed);

// ---- changes of the claim's status ----

// Sets `condition` (a type; empty: none) among the conditions of resizing, and drops the others of them.
void SetResizeCondition(corev1::PersistentVolumeClaimStatus& status, const std::string& condition,
                        const std::string& message, const metav1::Time& now);
void MarkInProgress(corev1::PersistentVolumeClaimStatus& status, const ExpandPlan& plan,
                    const metav1::Time& now);
void MarkFailed(corev1::PersistentVolumeClaimStatus& status, bool infeasible, const std::string& message,
                const metav1::Time& now);
void MarkNodePending(corev1::PersistentVolumeClaimStatus& status, const metav1::Time& now);
void MarkFinished(corev1::PersistentVolumeClaimStatus& status, const api::Amount& size,
                  const metav1::Time& now);

}  // namespace keelson::csi::controller
