// What becomes of a claim when its pods go.
#include <fmt/format.h>

#include <algorithm>

#include "controlplane/controllers/resourceclaim/controller.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::controllers {
namespace {

using Claim = resourcev1::ResourceClaim;

bool HasFinalizer(const Claim& claim) {
  const auto& finalizers = claim.metadata().finalizers();
  return std::find(finalizers.begin(), finalizers.end(), k8s::kResourceClaimFinalizer) != finalizers.end();
}

// As upstream: updates, not patches, so that a change of another client in between makes them fail.
Result<> RemoveFinalizer(const client::RestClient& api, Claim claim) {
  auto& finalizers = *claim.mutable_metadata()->mutable_finalizers();
  finalizers.erase(std::remove(finalizers.begin(), finalizers.end(), k8s::kResourceClaimFinalizer),
                   finalizers.end());
  const Result<Claim> stored = api.Update(claim);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error().Wrap("remove finalizer of claim");
  return {};
}

}  // namespace

Result<bool> ResourceClaimController::StillUses(
    const client::RestClient& api, const Claim& claim,
    const resourcev1::ResourceClaimConsumerReference& user) const {
  if (!user.api_group().empty() || user.resource() != "pods") {
    return Error(Code::kInvalid,
                 fmt::format("claim {}: unsupported ReservedFor entry: {} {} of group \"{}\"",
                             api::KeyOf(claim), user.resource(), user.name(), user.api_group()));
  }
  if (deleted_.Has(user.uid())) return false;
  const std::string& ns = claim.metadata().namespace_();
  if (const auto pod = pods_.Get(ns, user.name())) {
    return pod->metadata().uid() == user.uid() && !IsDone(*pod);
  }
  // The informer may be behind the scheduler, which has just reserved the claim: only the API server knows.
  const Result<corev1::Pod> pod = api.Get<corev1::Pod>(ns, user.name());
  if (!pod && !pod.error().Is(Code::kNotFound)) return pod.error();
  return pod && pod->metadata().uid() == user.uid();
}

Result<> ResourceClaimController::SyncClaim(const client::RestClient& api, const std::string& key) {
  const auto claim = claims_.Get(key);
  if (!claim) return {};
  Claim changed = *claim;
  changed.mutable_status()->clear_reserved_for();
  for (const auto& user : claim->status().reserved_for()) {
    KEELSON_ASSIGN_OR_RETURN(const bool uses, StillUses(api, *claim, user));
    if (uses) *changed.mutable_status()->add_reserved_for() = user;
  }
  const bool unused = changed.status().reserved_for().empty();
  const bool released = changed.status().reserved_for_size() < claim->status().reserved_for_size();
  const bool going = claim->metadata().has_deletion_timestamp() && HasFinalizer(*claim);
  if (released || (going && unused && claim->status().has_allocation())) {
    // The next user may get other devices, on another node.
    if (unused) changed.mutable_status()->clear_allocation();
    KEELSON_ASSIGN_OR_RETURN(changed, api.UpdateStatus(changed));
  }
  if (unused && HasFinalizer(changed) && (released || going) && !changed.status().has_allocation()) {
    KEELSON_RETURN_IF_ERROR(RemoveFinalizer(api, changed));
  }
  return unused ? DeleteIfNotNeeded(api, *claim) : Result<>();
}

Result<> ResourceClaimController::DeleteIfNotNeeded(const client::RestClient& api, const Claim& claim) const {
  const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
  if (!owner || owner->kind() != "Pod" || owner->api_version() != "v1") return {};
  const auto pod = pods_.Get(claim.metadata().namespace_(), owner->name());
  // A pod that is not known may be too new; the garbage collector deletes the claims of pods that are gone.
  if (!pod || (pod->metadata().uid() == owner->uid() && !IsDone(*pod))) return {};
  const Result<> deleted = api.Delete<Claim>(claim.metadata().namespace_(), claim.metadata().name());
  if (!deleted && !deleted.error().Is(Code::kNotFound)) return deleted.error().Wrap("delete claim");
  return {};
}

}  // namespace keelson::controllers
