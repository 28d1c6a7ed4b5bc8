#include "kubelet/cm/dra/prepare.h"

#include <fmt/format.h>

#include "lib/k8s/pods/resource_claims.h"

namespace keelson::kubelet {

namespace {

Result<> PrepareClaim(const corev1::Pod& pod, const k8s::ClaimReference& reference,
                      const GetResourceClaim& get) {
  const auto claim = get(pod.metadata().namespace_(), reference.name);
  if (!claim) return claim.error().Wrap("fetch ResourceClaim " + reference.name);
  if (reference.generated) KEELSON_RETURN_IF_ERROR(k8s::CheckClaimIsForPod(pod, *claim));
  if (!k8s::IsReservedForPod(pod, *claim)) {
    return Error(Code::kForbidden,
                 fmt::format("pod {} ({}) is not allowed to use ResourceClaim {} ({})", pod.metadata().name(),
                             pod.metadata().uid(), reference.name, claim->metadata().uid()));
  }
  if (!claim->status().has_allocation()) {
    return Error(Code::kUnavailable, fmt::format("ResourceClaim {}: not allocated", reference.name));
  }
  const auto& devices = claim->status().allocation().devices().results();
  if (devices.empty()) return {};
  return Error(Code::kUnavailable, fmt::format("DRA driver {} is not registered", devices[0].driver()));
}

}  // namespace

Result<> PrepareDynamicResources(const corev1::Pod& pod, const GetResourceClaim& get) {
  for (const corev1::PodResourceClaim& entry : pod.spec().resource_claims()) {
    KEELSON_ASSIGN_OR_RETURN(const k8s::ClaimReference reference, k8s::ClaimOf(pod, entry));
    if (!reference.name.empty()) KEELSON_RETURN_IF_ERROR(PrepareClaim(pod, reference, get));
  }
  if (pod.status().has_extended_resource_claim_status()) {
    const std::string& name = pod.status().extended_resource_claim_status().resource_claim_name();
    KEELSON_RETURN_IF_ERROR(PrepareClaim(pod, {name, true}, get));
  }
  return {};
}

}  // namespace keelson::kubelet
