#include "controlplane/controllers/volumeexpand/controller.h"

#include "lib/api/quantity.h"

namespace keelson::controllers {
namespace {

template <typename Amounts>
api::Amount StorageOf(const Amounts& amounts) {
  auto found = amounts.find("storage");
  return found == amounts.end() ? api::Amount() : api::Amount::Of(found->second);
}

api::Amount Asked(const corev1::PersistentVolumeClaim& claim) {
  return StorageOf(claim.spec().resources().requests());
}

bool WantsMore(const corev1::PersistentVolumeClaim& claim) {
  return claim.status().phase() == "Bound" && Asked(claim) > StorageOf(claim.status().capacity());
}

}  // namespace

VolumeExpandController::VolumeExpandController(client::RestClient, client::InformerFactory& informers,
                                               client::EventRecorder& events, Clock& clock)
    : Controller("volume_expand", clock),
      events_(events),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()),
      volumes_(informers.Get<corev1::PersistentVolume>()) {
  claims_.AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    // Told once for each size that is asked for.
    if (!change.new_object || !WantsMore(*change.new_object)) return;
    if (change.old_object && WantsMore(*change.old_object) &&
        Asked(*change.old_object) == Asked(*change.new_object))
      return;
    queue().Add(change.key);
  });
}

Result<Requeue> VolumeExpandController::Reconcile(const std::string& key, std::stop_token) {
  auto claim = claims_.Get(key);
  if (!claim || !WantsMore(*claim)) return Requeue{};
  auto volume = volumes_.Get(claim->spec().volume_name());
  if (!volume) return Requeue{};
  if (volume->spec().claim_ref().uid() != claim->metadata().uid())
    return Error(Code::kConflict, "persistent volume is not bound to PVC being updated: " + key);
  events_.Record(*claim, "Normal", "ExternalExpanding",
                 "waiting for an external controller to expand this PVC");
  return Requeue{};
}

}  // namespace keelson::controllers
