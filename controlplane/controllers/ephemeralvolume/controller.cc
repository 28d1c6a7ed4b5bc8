#include "controlplane/controllers/ephemeralvolume/controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/pod_claims.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

bool HasEphemeral(const corev1::Pod& pod) {
  const auto& volumes = pod.spec().volumes();
  return std::any_of(volumes.begin(), volumes.end(),
                     [](const corev1::Volume& volume) { return volume.volume_source().has_ephemeral(); });
}

// A pod must not mount a claim that another pod owns: that would expose foreign data.
Result<> CheckOwner(const corev1::Pod& pod, const corev1::PersistentVolumeClaim& claim) {
  const metav1::OwnerReference* owner = api::ControllerOf(claim.metadata());
  if (owner && owner->uid() == pod.metadata().uid()) return {};
  return Error(Code::kInvalid, fmt::format("PVC {} was not created for pod {} (pod is not owner)",
                                           api::KeyOf(claim), api::KeyOf(pod)));
}

corev1::PersistentVolumeClaim ClaimFor(const corev1::Pod& pod, const corev1::Volume& volume) {
  const corev1::PersistentVolumeClaimTemplate& source =
      volume.volume_source().ephemeral().volume_claim_template();
  corev1::PersistentVolumeClaim claim;
  metav1::ObjectMeta& meta = *claim.mutable_metadata();
  meta.set_name(EphemeralClaimName(pod, volume));
  meta.set_namespace_(pod.metadata().namespace_());
  *meta.mutable_labels() = source.metadata().labels();
  *meta.mutable_annotations() = source.metadata().annotations();
  *meta.add_owner_references() = api::ControllerRef(pod);
  *claim.mutable_spec() = source.spec();
  return claim;
}

}  // namespace

EphemeralVolumeController::EphemeralVolumeController(client::RestClient api,
                                                     client::InformerFactory& informers,
                                                     client::EventRecorder& events, Clock& clock)
    : Controller("ephemeral_volume", clock, 2),
      api_(std::move(api)),
      events_(events),
      pods_(informers.Get<corev1::Pod>()),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()) {
  pods_.AddIndex(kByClaim, ClaimsOf);
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    // Volumes of a pod never change.
    if (!change.old_object && HasEphemeral(*change.new_object)) queue().Add(change.key);
  });
  claims_.AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    if (change.new_object) return;
    for (const auto& pod : pods_.ByIndex(kByClaim, change.key)) {
      if (HasEphemeral(*pod)) queue().Add(api::KeyOf(*pod));
    }
  });
}

Result<> EphemeralVolumeController::Ensure(const client::RestClient& api, const corev1::Pod& pod,
                                           const corev1::Volume& volume) {
  const std::string name = EphemeralClaimName(pod, volume);
  if (auto claim = claims_.Get(pod.metadata().namespace_(), name)) return CheckOwner(pod, *claim);
  Result<corev1::PersistentVolumeClaim> made = api.Create(ClaimFor(pod, volume));
  static metrics::Value& tries = TheMetrics().ephemeral_volume_create_total.With();
  static metrics::Value& failures = TheMetrics().ephemeral_volume_create_failures_total.With();
  tries.Increment();
  if (made) return {};
  failures.Increment();
  if (!made.error().Is(Code::kAlreadyExists)) return made.error().Wrap("create PVC " + name);
  // Created by an earlier sync or another client; the store does not show it yet.
  KEELSON_ASSIGN_OR_RETURN(corev1::PersistentVolumeClaim claim,
                           api.Get<corev1::PersistentVolumeClaim>(pod.metadata().namespace_(), name));
  return CheckOwner(pod, claim);
}

Result<Requeue> EphemeralVolumeController::Reconcile(const std::string& key, std::stop_token stop) {
  auto pod = pods_.Get(key);
  if (!pod || pod->metadata().has_deletion_timestamp() || k8s::IsTerminal(*pod)) return Requeue{};
  const client::RestClient api = api_.With(stop);
  for (const corev1::Volume& volume : pod->spec().volumes()) {
    if (!volume.volume_source().has_ephemeral()) continue;
    Result<> there = Ensure(api, *pod, volume);
    if (there) continue;
    if (IsNamespaceTerminating(there.error())) return Requeue{};
    events_.Record(*pod, "Warning", "FailedBinding",
                   fmt::format("ephemeral volume {}: {}", volume.name(), there.error().message()));
    return there.error().Wrap("ephemeral volume " + volume.name());
  }
  return Requeue{};
}

}  // namespace keelson::controllers
