#include "controlplane/controllers/volumeexpand/controller.h"

#include <fmt/format.h>

#include "controlplane/controllers/common/ownership.h"
#include "controlplane/controllers/volumebinding/match.h"
#include "lib/api/quantity.h"
#include "lib/base/json_quote.h"

namespace keelson::controllers {
namespace {

constexpr char kResizer[] = "volume.kubernetes.io/storage-resizer";

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

// The in-tree plugin name of a migrated volume; else "".
std::string MovedOut(const corev1::PersistentVolume& volume) {
  const auto& source = volume.spec().persistent_volume_source();
  if (source.has_aws_elastic_block_store()) return "kubernetes.io/aws-ebs";
  if (source.has_azure_disk()) return "kubernetes.io/azure-disk";
  if (source.has_azure_file()) return "kubernetes.io/azure-file";
  if (source.has_cinder()) return "kubernetes.io/cinder";
  if (source.has_gce_persistent_disk()) return "kubernetes.io/gce-pd";
  if (source.has_portworx_volume()) return "kubernetes.io/portworx-volume";
  if (source.has_vsphere_volume()) return "kubernetes.io/vsphere-volume";
  return "";
}

}  // namespace

VolumeExpandController::VolumeExpandController(client::RestClient api, client::InformerFactory& informers,
                                               client::EventRecorder& events, Clock& clock)
    : Controller("volume_expand", clock),
      api_(std::move(api)),
      events_(events),
      claims_(informers.Get<corev1::PersistentVolumeClaim>()),
      volumes_(informers.Get<corev1::PersistentVolume>()) {
  claims_.AddHandler([this](const client::Change<corev1::PersistentVolumeClaim>& change) {
    // One event for each requested size.
    if (!change.new_object || !WantsMore(*change.new_object)) return;
    if (change.old_object && WantsMore(*change.old_object) &&
        Asked(*change.old_object) == Asked(*change.new_object)) {
      return;
    }
    queue().Add(change.key);
  });
}

Result<Requeue> VolumeExpandController::Reconcile(const std::string& key, std::stop_token stop) {
  auto claim = claims_.Get(key);
  if (!claim || !WantsMore(*claim)) return Requeue{};
  auto volume = volumes_.Get(claim->spec().volume_name());
  if (!volume) return Requeue{};
  if (volume->spec().claim_ref().uid() != claim->metadata().uid()) {
    return Error(Code::kConflict, "persistent volume is not bound to PVC being updated: " + key);
  }
  if (const std::string moved = MovedOut(*volume); !moved.empty()) {
    events_.Record(*claim, "Normal", "ExternalExpanding",
                   "CSI migration enabled for " + moved + "; waiting for external resizer to expand the pvc");
    const metav1::ObjectMeta& meta = claim->metadata();
    const std::string resizer = ExternalProvisioner(moved);
    auto has = meta.annotations().find(kResizer);
    if (has != meta.annotations().end() && has->second == resizer) return Requeue{};
    auto patched = api_.With(stop).Patch<corev1::PersistentVolumeClaim>(
        meta.namespace_(), meta.name(), client::PatchType::kMerge,
        fmt::format(R"({{"metadata":{{"uid":{},"annotations":{{"{}":{}}}}}}})", JsonQuoted(meta.uid()),
                    kResizer, JsonQuoted(resizer)),
        "status");
    if (!patched && !patched.error().Is(Code::kNotFound)) return patched.error().Wrap("name the resizer");
    return Requeue{};
  }
  events_.Record(*claim, "Normal", "ExternalExpanding",
                 "waiting for an external controller to expand this PVC");
  return Requeue{};
}

}  // namespace keelson::controllers
