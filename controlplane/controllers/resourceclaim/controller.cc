#include "controlplane/controllers/resourceclaim/controller.h"

#include <memory>
#include <vector>

#include "controlplane/controllers/common/metrics.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::controllers {
namespace {

constexpr char kPodPrefix[] = "pod:";
constexpr char kClaimPrefix[] = "claim:";
constexpr char kByResourceClaim[] = "pod-resource-claim-index";
constexpr char kByOwner[] = "claim-pod-owner-index";

// Keys of the claims that the pod has now.
std::vector<std::string> ClaimKeys(const corev1::Pod& pod) {
  std::vector<std::string> out;
  for (const corev1::PodResourceClaim& entry : pod.spec().resource_claims()) {
    const Result<k8s::ClaimReference> claim = k8s::ClaimOf(pod, entry);
    if (claim && !claim->name.empty()) out.push_back(api::KeyOf(pod.metadata().namespace_(), claim->name));
  }
  const std::string& extended = pod.status().extended_resource_claim_status().resource_claim_name();
  if (!extended.empty()) out.push_back(api::KeyOf(pod.metadata().namespace_(), extended));
  return out;
}

// The gauge that counts claims like this one.
metrics::Value& CountOf(const resourcev1::ResourceClaim& claim) {
  const auto& annotations = claim.metadata().annotations();
  std::string source;
  if (annotations.contains(ResourceClaimController::kPodClaimName)) {
    source = "resource_claim_template";
  } else if (annotations.contains("resource.kubernetes.io/extended-resource-claim")) {
    source = "extended_resource";
  }
  return TheMetrics().resource_claims.With({claim.status().has_allocation() ? "true" : "false",
                                            k8s::HasAdminAccess(claim) ? "true" : "false", source});
}

}  // namespace

ResourceClaimController::ResourceClaimController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder& events, Clock& clock)
    : Controller("resource_claim", clock, 50),
      api_(std::move(api)),
      events_(events),
      pods_(informers.Get<corev1::Pod>()),
      claims_(informers.Get<Claim>()),
      templates_(informers.Get<resourcev1::ResourceClaimTemplate>()) {
  TheMetrics().resource_claims.Clear();  // a process that leads again counts anew
  pods_.AddIndex(kByResourceClaim, ClaimKeys);
  claims_.AddIndex(kByOwner, [](const Claim& claim) {
    const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
    return owner ? std::vector{owner->uid()} : std::vector<std::string>();
  });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    PodChanged(change.object(), change.new_object == nullptr);
  });
  claims_.AddHandler([this](const client::Change<Claim>& change) { ClaimChanged(change); });
}

void ResourceClaimController::PodChanged(const corev1::Pod& pod, bool deleted) {
  if (!k8s::HasResourceClaims(pod)) return;
  if (deleted) {
    deleted_.Add(pod.metadata().uid());
    MutexLock lock(mutex_);
    std::erase_if(made_, [&](const auto& one) { return one.first.first == pod.metadata().uid(); });
  }
  if (deleted || IsDone(pod)) {
    for (const std::string& claim : ClaimKeys(pod)) queue().Add(kClaimPrefix + claim);
  }
  if (!deleted && NeedsWork(pod)) queue().Add(kPodPrefix + api::KeyOf(pod));
}

void ResourceClaimController::ClaimChanged(const client::Change<Claim>& change) {
  if (change.old_object) CountOf(*change.old_object).Add(-1);
  if (change.new_object) {
    CountOf(*change.new_object).Add(1);
    // Also at the start: pods may have gone while this controller was away.
    queue().Add(kClaimPrefix + change.key);
  }
  if (!change.old_object || !change.new_object) {
    MutexLock lock(mutex_);
    std::erase_if(made_, [&](const auto& one) { return one.second == change.key; });
  }
  for (const auto& pod : pods_.ByIndex(kByResourceClaim, change.key)) PodChanged(*pod, false);
}

bool ResourceClaimController::NeedsWork(const corev1::Pod& pod) const {
  if (pod.metadata().has_deletion_timestamp() || IsDone(pod)) return false;
  for (const corev1::PodResourceClaim& entry : pod.spec().resource_claims()) {
    const Result<k8s::ClaimReference> reference = k8s::ClaimOf(pod, entry);
    if (!reference) return true;
    if (reference->name.empty()) continue;
    const std::shared_ptr<const Claim> claim = claims_.Get(pod.metadata().namespace_(), reference->name);
    if (!claim) {
      if (reference->generated) return true;
      continue;  // for its user to make
    }
    // Someone else's claim has the name: the pod waits until a user deletes it.
    if (reference->generated && !k8s::CheckClaimIsForPod(pod, *claim)) return false;
    if (!pod.spec().node_name().empty() && claim->status().has_allocation() &&
        !k8s::IsReservedForPod(pod, *claim)) {
      return true;
    }
  }
  return false;
}

Result<Requeue> ResourceClaimController::Reconcile(const std::string& key, std::stop_token stop) {
  const client::RestClient api = api_.With(stop);
  const size_t colon = key.find(':') + 1;
  const std::string object = key.substr(colon);
  if (key.compare(0, colon, kPodPrefix) == 0) {
    KEELSON_RETURN_IF_ERROR(SyncPod(api, object));
  } else {
    KEELSON_RETURN_IF_ERROR(SyncClaim(api, object));
  }
  return Requeue{};
}

std::string ResourceClaimController::FindMade(const corev1::Pod& pod, const corev1::PodResourceClaim& entry) {
  for (const auto& claim : claims_.ByIndex(kByOwner, pod.metadata().uid())) {
    const auto& annotations = claim->metadata().annotations();
    const auto name = annotations.find(kPodClaimName);
    if (name != annotations.end() && name->second == entry.name()) return claim->metadata().name();
  }
  MutexLock lock(mutex_);
  const auto made = made_.find({pod.metadata().uid(), entry.name()});
  return made == made_.end() ? "" : api::SplitKey(made->second).second;
}

bool ResourceClaimController::IsDone(const corev1::Pod& pod) {
  return k8s::IsTerminal(pod) || (pod.metadata().has_deletion_timestamp() && pod.spec().node_name().empty());
}

}  // namespace keelson::controllers
