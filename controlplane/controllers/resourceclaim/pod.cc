// What a pod needs: generated claims, their names in its status, and reservations if it runs past the scheduler.
#include <fmt/format.h>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/resourceclaim/controller.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/resource_claims.h"

namespace keelson::controllers {
namespace {

// "<pod>-<entry>-" for generateName. Both parts of a long name are cut in proportion, so that the entry stays visible:
// the API server would cut at the end only.
std::string GenerateName(const std::string& pod, const std::string& entry) {
  constexpr size_t kMost = 57;  // leaves a hyphen and 5 characters of 63
  const size_t length = pod.size() + entry.size() + 2;
  if (length <= kMost) return pod + "-" + entry + "-";
  return pod.substr(0, pod.size() * kMost / length) + "-" + entry.substr(0, entry.size() * kMost / length);
}

resourcev1::ResourceClaim ClaimFor(const corev1::Pod& pod, const corev1::PodResourceClaim& entry,
                                   const resourcev1::ResourceClaimTemplate& source) {
  resourcev1::ResourceClaim claim;
  metav1::ObjectMeta& meta = *claim.mutable_metadata();
  meta.set_generate_name(GenerateName(pod.metadata().name(), entry.name()));
  meta.set_namespace_(pod.metadata().namespace_());
  *meta.mutable_labels() = source.spec().metadata().labels();
  *meta.mutable_annotations() = source.spec().metadata().annotations();
  (*meta.mutable_annotations())[ResourceClaimController::kPodClaimName] = entry.name();
  *meta.add_owner_references() = api::ControllerRef(pod);
  *claim.mutable_spec() = source.spec().spec();
  return claim;
}

}  // namespace

Result<> ResourceClaimController::SyncPod(const client::RestClient& api, const std::string& key) {
  const auto pod = pods_.Get(key);
  if (!pod || pod->metadata().has_deletion_timestamp() || IsDone(*pod)) return {};
  std::string statuses;
  for (const corev1::PodResourceClaim& entry : pod->spec().resource_claims()) {
    const Result<std::string> made = EnsureClaim(api, *pod, entry);
    if (!made) {
      events_.Record(*pod, "Warning", "FailedResourceClaimCreation",
                     fmt::format("PodResourceClaim {}: {}", entry.name(), made.error().message()));
      return made.error().Wrap(fmt::format("pod {}, PodResourceClaim {}", key, entry.name()));
    }
    if (made->empty()) continue;
    statuses += fmt::format(R"({}{{"name":{},"resourceClaimName":{}}})", statuses.empty() ? "" : ",",
                            JsonQuoted(entry.name()), JsonQuoted(*made));
  }
  if (!statuses.empty()) {
    const metav1::ObjectMeta& meta = pod->metadata();
    const Result<corev1::Pod> stored = api.Patch<corev1::Pod>(
        meta.namespace_(), meta.name(), client::PatchType::kStrategicMerge,
        fmt::format(R"({{"metadata":{{"uid":{}}},"status":{{"resourceClaimStatuses":[{}]}}}})",
                    JsonQuoted(meta.uid()), statuses),
        "status");
    if (!stored) return stored.error().Wrap(fmt::format("update pod {} ResourceClaimStatuses", key));
  }
  // Its scheduler reserves claims for a pod without a node.
  return pod->spec().node_name().empty() ? Result<>() : Reserve(api, *pod);
}

Result<std::string> ResourceClaimController::EnsureClaim(const client::RestClient& api,
                                                         const corev1::Pod& pod,
                                                         const corev1::PodResourceClaim& entry) {
  const Result<k8s::ClaimReference> reference = k8s::ClaimOf(pod, entry);
  if (!reference && !reference.error().Is(Code::kNotFound)) {
    return reference.error().Wrap("checking for claim before creating it");
  }
  if (reference) {
    if (!reference->generated || reference->name.empty()) return "";
    const auto claim = claims_.Get(pod.metadata().namespace_(), reference->name);
    if (claim) {
      const Result<> mine = k8s::CheckClaimIsForPod(pod, *claim);
      if (mine) return "";
      log::Error("Claim of a pod is no longer owned by the pod, creating a new one",
                 {{"pod", api::KeyOf(pod)}, {"err", mine.error().message()}});
    }
  }
  const std::string made = FindMade(pod, entry);
  if (made.empty()) return MakeClaim(api, pod, entry);
  // The status names it already, and the informer is behind.
  if (reference && reference->name == made) return "";
  return made;
}

Result<std::string> ResourceClaimController::MakeClaim(const client::RestClient& api, const corev1::Pod& pod,
                                                       const corev1::PodResourceClaim& entry) {
  const std::string& name = entry.resource_claim_template_name();
  const auto source = templates_.Get(pod.metadata().namespace_(), name);
  if (!source) {
    return Error(Code::kNotFound,
                 fmt::format("resource claim template \"{}\": resourceclaimtemplate.resource.k8s.io "
                             "\"{}\" not found",
                             name, name));
  }
  const Claim claim = ClaimFor(pod, entry, *source);
  const Result<Claim> stored = api.Create(claim);
  TheMetrics()
      .resource_claim_creates_total
      .With({stored ? "success" : "failure", k8s::HasAdminAccess(claim) ? "true" : "false"})
      .Increment();
  if (!stored) return stored.error().Wrap("create ResourceClaim");
  const std::string key = api::KeyOf(*stored);
  const bool seen = claims_.Get(key) != nullptr;
  MutexLock lock(mutex_);
  if (!seen) made_[{pod.metadata().uid(), entry.name()}] = key;
  return stored->metadata().name();
}

Result<> ResourceClaimController::Reserve(const client::RestClient& api, const corev1::Pod& pod) {
  for (const corev1::PodResourceClaim& entry : pod.spec().resource_claims()) {
    const Result<k8s::ClaimReference> reference = k8s::ClaimOf(pod, entry);
    if (!reference) return {};  // the status was written just now: its event brings the pod here again
    if (reference->name.empty()) continue;
    const auto claim = claims_.Get(pod.metadata().namespace_(), reference->name);
    if (!claim) return {};
    if (reference->generated) KEELSON_RETURN_IF_ERROR(k8s::CheckClaimIsForPod(pod, *claim));
    if (!claim->status().has_allocation() || k8s::IsReservedForPod(pod, *claim)) continue;
    Claim changed = *claim;
    resourcev1::ResourceClaimConsumerReference& user = *changed.mutable_status()->add_reserved_for();
    user.set_resource("pods");
    user.set_name(pod.metadata().name());
    user.set_uid(pod.metadata().uid());
    const Result<Claim> stored = api.UpdateStatus(changed);
    if (!stored) return stored.error().Wrap("reserve claim for pod");
  }
  return {};
}

}  // namespace keelson::controllers
