#include "lib/k8s/pods/resource_claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::k8s {

Result<ClaimReference> ClaimOf(const corev1::Pod& pod, const corev1::PodResourceClaim& entry) {
  if (entry.has_resource_claim_name()) return ClaimReference{entry.resource_claim_name(), false};
  if (!entry.has_resource_claim_template_name()) {
    return Error(Code::kInvalid,
                 fmt::format("Pod {}, spec.resourceClaim {}: none of the supported fields are set",
                             api::KeyOf(pod), entry.name()));
  }
  for (const corev1::PodResourceClaimStatus& status : pod.status().resource_claim_statuses()) {
    if (status.name() == entry.name()) return ClaimReference{status.resource_claim_name(), true};
  }
  return Error(Code::kNotFound, fmt::format("Pod {}: ResourceClaim not created yet", api::KeyOf(pod)));
}

Result<> CheckClaimIsForPod(const corev1::Pod& pod, const resourcev1::ResourceClaim& claim) {
  const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
  if (claim.metadata().namespace_() == pod.metadata().namespace_() && owner &&
      owner->uid() == pod.metadata().uid()) {
    return {};
  }
  return Error(Code::kInvalid, fmt::format("ResourceClaim {} was not created for Pod {} (Pod is not owner)",
                                           api::KeyOf(claim), api::KeyOf(pod)));
}

bool IsReservedForPod(const corev1::Pod& pod, const resourcev1::ResourceClaim& claim) {
  const auto& users = claim.status().reserved_for();
  return std::any_of(users.begin(), users.end(), [&](const resourcev1::ResourceClaimConsumerReference& user) {
    return user.uid() == pod.metadata().uid();
  });
}

bool HasAdminAccess(const resourcev1::ResourceClaim& claim) {
  const auto& requests = claim.spec().devices().requests();
  return std::any_of(requests.begin(), requests.end(), [](const resourcev1::DeviceRequest& request) {
    return request.exactly().admin_access();
  });
}

bool HasResourceClaims(const corev1::Pod& pod) {
  return !pod.spec().resource_claims().empty() || pod.status().has_extended_resource_claim_status();
}

}  // namespace keelson::k8s
