#include "controlplane/controllers/statefulset/claims.h"

#include <fmt/format.h>

#include "lib/api/meta.h"

namespace keelson::controllers {

SetClaims::SetClaims(client::InformerFactory& informers, client::EventRecorder& events)
    : events_(events), claims_(informers.Get<corev1::PersistentVolumeClaim>()) {}

Result<> SetClaims::CreateOne(const client::RestClient& api, const appsv1::StatefulSet& set,
                              const corev1::Pod& pod, int32_t ordinal, corev1::PersistentVolumeClaim claim) {
  const std::string name = claim.metadata().name();
  const std::string &pod_name = pod.metadata().name(), &set_name = set.metadata().name();
  UpdateOwners(set, pod, ordinal, claim);
  Result<corev1::PersistentVolumeClaim> created = api.Create(claim);
  if (created) {
    events_.Record(set, "Normal", "SuccessfulCreate",
                   fmt::format("create Claim {} Pod {} in StatefulSet {} success", name, pod_name, set_name));
    return {};
  }
  if (created.error().Is(Code::kAlreadyExists)) return {};
  events_.Record(set, "Warning", "FailedCreate",
                 fmt::format("create Claim {} for Pod {} in StatefulSet {} failed error: {}", name, pod_name,
                             set_name, created.error().message()));
  return created.error().Wrap("failed to create PVC " + name);
}

Result<> SetClaims::Create(const client::RestClient& api, const appsv1::StatefulSet& set,
                           const corev1::Pod& pod, int32_t ordinal) {
  Result<> result;
  for (corev1::PersistentVolumeClaim& claim : ClaimsAt(set, ordinal)) {
    const std::string name = claim.metadata().name();
    const auto there = claims_.Get(api::KeyOf(claim));
    Result<> one;
    if (!there) {
      one = CreateOne(api, set, pod, ordinal, std::move(claim));
    } else if (there->metadata().has_deletion_timestamp()) {
      one = Error(Code::kConflict, fmt::format("pvc {} is being deleted", name));
    }
    if (!one && result) result = one;
  }
  return result;
}

Result<> SetClaims::Settle(const client::RestClient& api, const appsv1::StatefulSet& set,
                           const corev1::Pod& pod, int32_t ordinal) {
  for (const corev1::PersistentVolumeClaim& claim : ClaimsAt(set, ordinal)) {
    const auto there = claims_.Get(api::KeyOf(claim));
    if (!there) continue;
    corev1::PersistentVolumeClaim changed = *there;
    if (!UpdateOwners(set, pod, ordinal, changed)) continue;
    Result<corev1::PersistentVolumeClaim> stored = api.Update(changed);
    if (!stored && !stored.error().Is(Code::kNotFound)) {
      return stored.error().Wrap(
          fmt::format("could not update claim {} for delete policy ownerRefs", claim.metadata().name()));
    }
  }
  return {};
}

bool SetClaims::AnyStale(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal) const {
  if (set.spec().persistent_volume_claim_retention_policy().when_scaled() != "Delete") return false;
  for (const corev1::PersistentVolumeClaim& claim : ClaimsAt(set, ordinal)) {
    const auto there = claims_.Get(api::KeyOf(claim));
    if (there && IsStale(*there, pod)) return true;
  }
  return false;
}

}  // namespace keelson::controllers
