#include "controlplane/controllers/volumebinding/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/pod_claims.h"
#include "controlplane/controllers/volumebinding/binding.h"
#include "controlplane/controllers/volumebinding/metrics.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {

const char kByClaimRef[] = "claim-ref", kFreeByClass[] = "free-by-class";

namespace {

constexpr char kUnboundByClass[] = "unbound-by-class", kByVolume[] = "volume";

bool Waits(const StorageClass* one) { return one && one->volume_binding_mode() == "WaitForFirstConsumer"; }

std::vector<std::string> ClaimRefIndex(const PersistentVolume& volume) {
  if (!volume.spec().has_claim_ref()) return {};
  return {api::KeyOf(volume.spec().claim_ref().namespace_(), volume.spec().claim_ref().name())};
}

std::vector<std::string> FreeIndex(const PersistentVolume& volume) {
  if (volume.spec().has_claim_ref()) return {};
  return {ClassOf(volume)};
}

}  // namespace

void IndexVolumes(client::Informer<PersistentVolume>& volumes) {
  volumes.AddIndex(kByClaimRef, ClaimRefIndex);
  volumes.AddIndex(kFreeByClass, FreeIndex);
}

ClaimBinder::ClaimBinder(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock)
    : Controller("claims", clock),
      api_(std::move(api)),
      events_(events),
      claims_(informers.Get<PersistentVolumeClaim>()),
      volumes_(informers.Get<PersistentVolume>()),
      classes_(informers.Get<StorageClass>()),
      pods_(informers.Get<corev1::Pod>()) {
  IndexVolumes(volumes_);
  pods_.AddIndex(kByClaim, ClaimsOf);
  claims_.AddIndex(kUnboundByClass, [](const PersistentVolumeClaim& claim) -> std::vector<std::string> {
    if (HasAnnotation(claim.metadata(), kBindCompleted)) return {};
    return {ClassOf(claim)};
  });
  claims_.AddIndex(kByVolume, [](const PersistentVolumeClaim& claim) -> std::vector<std::string> {
    if (claim.spec().volume_name().empty()) return {};
    return {claim.spec().volume_name()};
  });
  claims_.AddHandler([this](const client::Change<PersistentVolumeClaim>& change) {
    CountClaim(change.old_object.get(), change.new_object.get());
    if (!change.new_object) written_.Clear(change.key);
    queue().Add(change.key);
  });
  volumes_.AddHandler([this](const client::Change<PersistentVolume>& change) { OnVolume(change); });
  classes_.AddHandler([this](const client::Change<StorageClass>& change) { OnClass(change); });
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    // A new pod that uses the claim changes the WaitForPodScheduled event.
    if (change.old_object) return;
    for (const std::string& key : ClaimsOf(*change.new_object)) queue().Add(key);
  });
}

void ClaimBinder::OnVolume(const client::Change<PersistentVolume>& change) {
  for (const auto& claim : claims_.ByIndex(kByVolume, change.key)) queue().Add(api::KeyOf(*claim));
  auto free = [](const std::shared_ptr<const PersistentVolume>& volume) {
    return volume && volume->status().phase() == "Available" && !volume->spec().has_claim_ref();
  };
  if (!change.new_object) return;
  for (const std::string& key : ClaimRefIndex(*change.new_object)) queue().Add(key);
  if (!free(change.new_object) || free(change.old_object)) return;
  const std::string name = ClassOf(*change.new_object);
  if (!Waits(classes_.Get(name).get())) EnqueueUnbound(name);
}

void ClaimBinder::OnClass(const client::Change<StorageClass>& change) {
  if (!change.new_object) return;
  EnqueueUnbound(change.key);
  if (IsDefault(*change.new_object)) EnqueueUnbound("");
}

void ClaimBinder::EnqueueUnbound(const std::string& class_name) {
  for (const auto& claim : claims_.ByIndex(kUnboundByClass, class_name)) queue().Add(api::KeyOf(*claim));
}

Result<Requeue> ClaimBinder::Reconcile(const std::string& key, std::stop_token stop) {
  auto claim = claims_.Get(key);
  if (!claim || HasAnnotation(claim->metadata(), kBindCompleted)) told_.erase(key);
  if (!claim || !written_.IsReady(key, claim->metadata())) return Requeue{};
  const client::RestClient api = api_.With(stop);
  Result<> result =
      HasAnnotation(claim->metadata(), kBindCompleted) ? SyncBound(api, *claim) : SyncUnbound(api, *claim);
  // The object is gone: its deletion event triggers the next sync.
  if (!result && !result.error().Is(Code::kNotFound)) return result.error();
  return Requeue{};
}

Result<> ClaimBinder::Lose(const client::RestClient& api, PersistentVolumeClaim claim, const char* reason,
                           const char* message) {
  KEELSON_ASSIGN_OR_RETURN(bool changed, SetUnboundPhase(api, claim, "Lost", written_));
  if (changed) events_.Record(claim, "Warning", reason, message);
  return {};
}

Result<> ClaimBinder::SyncBound(const client::RestClient& api, const PersistentVolumeClaim& claim) {
  const std::string& name = claim.spec().volume_name();
  if (name.empty()) {
    return Lose(api, claim, "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
  }
  auto volume = volumes_.Get(name);
  if (!volume) {
    // The store may not show what the scheduler or a provisioner has just written.
    Result<PersistentVolume> live = api.Get<PersistentVolume>("", name);
    if (live) return {};
    if (!live.error().Is(Code::kNotFound)) return live.error();
    return Lose(api, claim, "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
  }
  if (volume->spec().has_claim_ref() && volume->spec().claim_ref().uid() != claim.metadata().uid() &&
      !IsFor(*volume, claim)) {
    return Lose(api, claim, "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly");
  }
  return Bind(api, *volume, claim, written_);
}

Result<> ClaimBinder::SyncUnbound(const client::RestClient& api, const PersistentVolumeClaim& claim) {
  if (!claim.spec().volume_name().empty()) return SyncNamed(api, claim);
  if (claim.metadata().has_deletion_timestamp()) return {};
  const std::string class_name = ClassOf(claim);
  const auto own = class_name.empty() ? nullptr : classes_.Get(class_name);
  const bool delayed = Waits(own.get());  // then the scheduler selects the volume
  Volumes candidates = volumes_.ByIndex(kByClaimRef, api::KeyOf(claim));
  if (!delayed) {
    for (auto& volume : volumes_.ByIndex(kFreeByClass, class_name)) candidates.push_back(std::move(volume));
  }
  KEELSON_ASSIGN_OR_RETURN(auto volume, BestFit(candidates, claim, delayed));
  if (volume) return Bind(api, *volume, claim, written_);
  return Await(api, claim, own.get());
}

Result<> ClaimBinder::SyncNamed(const client::RestClient& api, const PersistentVolumeClaim& claim) {
  const std::string& name = claim.spec().volume_name();
  auto volume = volumes_.Get(name);
  PersistentVolumeClaim pending = claim;
  if (volume && !volume->spec().has_claim_ref()) {
    std::string problem = Mismatch(*volume, claim);
    if (problem.empty()) return Bind(api, *volume, claim, written_);
    Tell(claim, "Warning", "VolumeMismatch",
         fmt::format("Cannot bind to requested volume \"{}\": {}", name, problem));
  } else if (volume && IsFor(*volume, claim)) {
    return Bind(api, *volume, claim, written_);
  } else if (volume) {
    Tell(claim, "Warning", "FailedBinding",
         fmt::format("volume \"{}\" already bound to a different claim.", name));
  }
  KEELSON_RETURN_IF_ERROR(SetUnboundPhase(api, pending, "Pending", written_));
  return {};
}

Result<> ClaimBinder::Await(const client::RestClient& api, PersistentVolumeClaim claim,
                            const StorageClass* own) {
  if (!NamesClass(claim)) {
    if (auto fallback = DefaultOf(classes_.List())) {
      claim.mutable_spec()->set_storage_class_name(fallback->metadata().name());
      Result<PersistentVolumeClaim> stored = api.Update(claim);
      TheMetrics().retroactive_storageclass_total.With().Increment();
      if (!stored) TheMetrics().retroactive_storageclass_errors_total.With().Increment();
      KEELSON_ASSIGN_OR_RETURN(claim, std::move(stored));
      written_.WroteAt(api::KeyOf(claim), claim.metadata());
      return {};  // the update event triggers the next sync
    }
  }
  if (Waits(own) && !HasAnnotation(claim.metadata(), kSelectedNode)) {
    TellWaiting(claim);
  } else if (!ClassOf(claim).empty()) {
    KEELSON_RETURN_IF_ERROR(Provision(api, claim, own));
  } else {
    Tell(claim, "Normal", "FailedBinding",
         "no persistent volumes available for this claim and no storage class is set");
  }
  KEELSON_RETURN_IF_ERROR(SetUnboundPhase(api, claim, "Pending", written_));
  return {};
}

void ClaimBinder::Tell(const PersistentVolumeClaim& claim, const char* type, const char* reason,
                       std::string message) {
  std::string& told = told_[api::KeyOf(claim)];
  if (told == message) return;
  told = message;
  events_.Record(claim, type, reason, std::move(message));
}

void ClaimBinder::TellWaiting(const PersistentVolumeClaim& claim) {
  std::vector<std::string> waiting;
  for (const auto& pod : pods_.ByIndex(kByClaim, api::KeyOf(claim))) {
    if (pod->spec().node_name().empty() && !k8s::IsTerminal(*pod)) waiting.push_back(pod->metadata().name());
  }
  if (waiting.empty()) {
    Tell(claim, "Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding");
    return;
  }
  Tell(claim, "Normal", "WaitForPodScheduled",
       fmt::format("waiting for pod{} {} to be scheduled", waiting.size() > 1 ? "s" : "",
                   fmt::join(waiting, ",")));
}

Result<> ClaimBinder::Provision(const client::RestClient& api, PersistentVolumeClaim& claim,
                                const StorageClass* own) {
  if (!own) {
    Tell(claim, "Warning", "ProvisioningFailed",
         fmt::format("storageclass.storage.k8s.io \"{}\" not found", ClassOf(claim)));
    return {};
  }
  const std::string provisioner = ExternalProvisioner(own->provisioner());
  if (provisioner.empty()) {
    Tell(claim, "Warning", "ProvisioningFailed", "no volume plugin matched name: " + own->provisioner());
    return {};
  }
  auto& annotations = *claim.mutable_metadata()->mutable_annotations();
  if (annotations[kProvisioner] != provisioner || annotations[kBetaProvisioner] != provisioner) {
    annotations[kProvisioner] = annotations[kBetaProvisioner] = provisioner;
    KEELSON_ASSIGN_OR_RETURN(claim, api.Update(claim));
    written_.WroteAt(api::KeyOf(claim), claim.metadata());
  }
  Tell(claim, "Normal", "ExternalProvisioning",
       fmt::format("Waiting for a volume to be created either by the external provisioner '{}' or "
                   "manually by the system administrator. If volume creation is delayed, please "
                   "verify that the provisioner is running and correctly registered.",
                   provisioner));
  return {};
}

}  // namespace keelson::controllers
