#include "controlplane/controllers/storageprotection/controller.h"

#include <algorithm>

#include "controlplane/controllers/common/pod_claims.h"
#include "controlplane/controllers/storageprotection/finalizer.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::controllers {
namespace {

constexpr char kOfClaims[] = "kubernetes.io/pvc-protection", kOfVolumes[] = "kubernetes.io/pv-protection";

// An unscheduled pod does not use its claims; an ended pod may still have volumes mounted.
bool Uses(const corev1::Pod& pod) { return !pod.spec().node_name().empty(); }

}  // namespace

ClaimProtectionController::ClaimProtectionController(client::RestClient api,
                                                     client::InformerFactory& informers,
                                                     client::EventRecorder&, Clock& clock)
    : Controller("pvcprotection", clock),
      api_(std::move(api)),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()),
      pods_(informers.Get<corev1::Pod>()) {
  claims_.AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    if (change.new_object) queue().Add(change.key);
  });
  pods_.AddIndex(kByClaim, ClaimsOf);
  pods_.AddHandler([this](const client::Change<corev1::Pod>& change) {
    if (!change.old_object) return;
    const bool over = !change.new_object ||
                      change.new_object->metadata().uid() != change.old_object->metadata().uid() ||
                      k8s::IsTerminal(*change.new_object);
    if (!over) return;
    for (const std::string& key : ClaimsOf(*change.old_object)) queue().Add(key);
  });
}

Result<Requeue> ClaimProtectionController::Reconcile(const std::string& key, std::stop_token stop) {
  auto claim = claims_.Get(key);
  if (!claim) return Requeue{};
  const client::RestClient api = api_.With(stop);
  if (!claim->metadata().has_deletion_timestamp()) return SetFinalizer(api, *claim, kOfClaims, true);
  if (!HasFinalizer(claim->metadata(), kOfClaims)) return Requeue{};
  for (const auto& pod : pods_.ByIndex(kByClaim, key)) {
    if (Uses(*pod)) return Requeue{};  // the end of the pod triggers a sync
  }
  // Pods may be newer than the store: ask the API before removing the finalizer.
  KEELSON_ASSIGN_OR_RETURN(std::vector<corev1::Pod> live,
                           api.List<corev1::Pod>(claim->metadata().namespace_()));
  for (const corev1::Pod& pod : live) {
    const std::vector<std::string> keys = ClaimsOf(pod);
    if (Uses(pod) && std::find(keys.begin(), keys.end(), key) != keys.end()) return Requeue{};
  }
  return SetFinalizer(api, *claim, kOfClaims, false);
}

VolumeProtectionController::VolumeProtectionController(client::RestClient api,
                                                       client::InformerFactory& informers,
                                                       client::EventRecorder&, Clock& clock)
    : Controller("pvprotection", clock),
      api_(std::move(api)),
      volumes_(informers.Get<corev1::PersistentVolume>()) {
  volumes_.AddHandler([this](const client::Change<corev1::PersistentVolume>& change) {
    if (change.new_object) queue().Add(change.key);
  });
}

Result<Requeue> VolumeProtectionController::Reconcile(const std::string& key, std::stop_token stop) {
  auto volume = volumes_.Get(key);
  if (!volume) return Requeue{};
  const bool leaving = volume->metadata().has_deletion_timestamp();
  if (leaving && volume->status().phase() == "Bound") return Requeue{};
  return SetFinalizer(api_.With(stop), *volume, kOfVolumes, !leaving);
}

}  // namespace keelson::controllers
