#include "controlplane/controllers/volumebinding/binding.h"

#include <google/protobuf/util/message_differencer.h>

#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using google::protobuf::util::MessageDifferencer;

// True: the volume has changed.
bool PointAtClaim(PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  corev1::PersistentVolumeSpec& spec = *volume.mutable_spec();
  if (spec.has_claim_ref() && spec.claim_ref().uid() == claim.metadata().uid()) return false;
  // Who had named the claim before us is the one whose wish stays when the claim goes elsewhere.
  if (!spec.has_claim_ref()) (*volume.mutable_metadata()->mutable_annotations())[kBoundByController] = "yes";
  corev1::ObjectReference& ref = *spec.mutable_claim_ref();
  ref.set_kind("PersistentVolumeClaim");
  ref.set_api_version("v1");
  ref.set_namespace_(claim.metadata().namespace_());
  ref.set_name(claim.metadata().name());
  ref.set_uid(claim.metadata().uid());
  ref.set_resource_version(claim.metadata().resource_version());
  return true;
}

bool PointAtVolume(PersistentVolumeClaim& claim, const PersistentVolume& volume) {
  bool changed = false;
  auto& annotations = *claim.mutable_metadata()->mutable_annotations();
  if (claim.spec().volume_name() != volume.metadata().name()) {
    claim.mutable_spec()->set_volume_name(volume.metadata().name());
    annotations[kBoundByController] = "yes";
    changed = true;
  }
  if (!annotations.contains(kBindCompleted)) {
    annotations[kBindCompleted] = "yes";
    changed = true;
  }
  return changed;
}

// After the binding, the capacity of a claim belongs to the resizer.
void TakeOver(PersistentVolumeClaim& claim, const PersistentVolume& volume) {
  corev1::PersistentVolumeClaimStatus& status = *claim.mutable_status();
  *status.mutable_access_modes() = volume.spec().access_modes();
  if (status.phase() == "Bound") return;
  status.set_phase("Bound");
  *status.mutable_capacity() = volume.spec().capacity();
  if (volume.spec().has_volume_attributes_class_name()) {
    status.set_current_volume_attributes_class_name(volume.spec().volume_attributes_class_name());
  } else {
    status.clear_current_volume_attributes_class_name();
  }
}

Result<> Keep(Result<PersistentVolumeClaim> stored, PersistentVolumeClaim& claim, ConsistencyStore& claims) {
  if (!stored) return stored.error();
  claim = *std::move(stored);
  claims.WroteAt(api::KeyOf(claim), claim.metadata());
  return {};
}

}  // namespace

Result<bool> SetPhase(const client::RestClient& api, PersistentVolume& volume, const std::string& phase,
                      const std::string& message) {
  if (volume.status().phase() == phase) return false;
  volume.mutable_status()->set_phase(phase);
  volume.mutable_status()->clear_message();
  if (!message.empty()) volume.mutable_status()->set_message(message);
  volume.mutable_status()->clear_last_phase_transition_time();  // the API server's to say
  KEELSON_ASSIGN_OR_RETURN(volume, api.UpdateStatus(volume));
  return true;
}

Result<bool> SetUnboundPhase(const client::RestClient& api, PersistentVolumeClaim& claim,
                             const std::string& phase, ConsistencyStore& claims) {
  corev1::PersistentVolumeClaimStatus& status = *claim.mutable_status();
  const bool bare = status.access_modes().empty() && status.capacity().empty() &&
                    !status.has_current_volume_attributes_class_name();
  if (status.phase() == phase && bare) return false;
  const bool other = status.phase() != phase;
  status.set_phase(phase);
  status.clear_access_modes();
  status.clear_capacity();
  status.clear_current_volume_attributes_class_name();
  KEELSON_RETURN_IF_ERROR(Keep(api.UpdateStatus(claim), claim, claims));
  return other;
}

Result<> Bind(const client::RestClient& api, PersistentVolume volume, PersistentVolumeClaim claim,
              ConsistencyStore& claims) {
  if (PointAtClaim(volume, claim)) {
    KEELSON_ASSIGN_OR_RETURN(volume, api.Update(volume));
  }
  KEELSON_RETURN_IF_ERROR(SetPhase(api, volume, "Bound"));
  if (PointAtVolume(claim, volume)) {
    KEELSON_RETURN_IF_ERROR(Keep(api.Update(claim), claim, claims));
  }
  const corev1::PersistentVolumeClaimStatus before = claim.status();
  TakeOver(claim, volume);
  if (MessageDifferencer::Equals(before, claim.status())) return {};
  return Keep(api.UpdateStatus(claim), claim, claims);
}

Result<> Unbind(const client::RestClient& api, PersistentVolume volume) {
  if (HasAnnotation(volume.metadata(), kBoundByController)) {
    volume.mutable_spec()->clear_claim_ref();
    volume.mutable_metadata()->mutable_annotations()->erase(kBoundByController);
  } else {
    volume.mutable_spec()->mutable_claim_ref()->clear_uid();
  }
  KEELSON_ASSIGN_OR_RETURN(volume, api.Update(volume));
  KEELSON_RETURN_IF_ERROR(SetPhase(api, volume, "Available"));
  return {};
}

}  // namespace keelson::controllers
