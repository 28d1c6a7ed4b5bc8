// The ResourceClaims of a pod (KEP-4381; upstream's package dynamic-resource-allocation/resourceclaim). Pure, thread safe.
#pragma once

#include <string>

#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::k8s {

namespace resourcev1 = api::resource::v1;

// The claim behind an entry of spec.resourceClaims.
struct ClaimReference {
  std::string name;        // in the pod's namespace; empty: the entry needs no claim
  bool generated = false;  // made from a template: CheckClaimIsForPod() before use
};

// kNotFound: the entry names a template, and its claim is not in the pod's status yet. kInvalid: the entry names neither
// a claim nor a template.
Result<ClaimReference> ClaimOf(const corev1::Pod& pod, const corev1::PodResourceClaim& entry);

// kInvalid with upstream's text unless the pod is the controller of the claim.
Result<> CheckClaimIsForPod(const corev1::Pod& pod, const resourcev1::ResourceClaim& claim);

// Whether status.reservedFor lists the pod.
bool IsReservedForPod(const corev1::Pod& pod, const resourcev1::ResourceClaim& claim);

// Whether a request of the claim is for administration, beside other users.
bool HasAdminAccess(const resourcev1::ResourceClaim& claim);

// Whether the pod has claims: its own entries, or one that the scheduler made for extended resources.
bool HasResourceClaims(const corev1::Pod& pod);

// Finalizer of allocated claims, which keeps their devices from a second user while the first may still run.
inline constexpr char kResourceClaimFinalizer[] = "resource.kubernetes.io/delete-protection";

}  // namespace keelson::k8s
