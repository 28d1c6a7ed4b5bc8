#include "controlplane/controllers/volumebinding/match.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "lib/api/meta.h"
#include "lib/api/quantity.h"
#include "lib/api/selector.h"

namespace keelson::controllers {
namespace {

template <typename Amounts>
api::Amount StorageOf(const Amounts& amounts) {
  auto found = amounts.find("storage");
  return found == amounts.end() ? api::Amount() : api::Amount::Of(found->second);
}

std::string AnnotatedOr(const metav1::ObjectMeta& meta, const std::string& other) {
  auto found = meta.annotations().find(kBetaClass);
  return found == meta.annotations().end() ? other : found->second;
}

bool OffersModes(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  const auto& offered = volume.spec().access_modes();
  const auto& asked = claim.spec().access_modes();
  return std::all_of(asked.begin(), asked.end(), [&](const std::string& mode) {
    return std::find(offered.begin(), offered.end(), mode) != offered.end();
  });
}

bool IsLargeEnough(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return StorageOf(volume.spec().capacity()) >= StorageOf(claim.spec().resources().requests());
}

bool SameAttributes(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return volume.spec().volume_attributes_class_name() == claim.spec().volume_attributes_class_name();
}

}  // namespace

bool HasAnnotation(const metav1::ObjectMeta& meta, std::string_view name) {
  return meta.annotations().contains(std::string(name));
}

std::string ClassOf(const PersistentVolumeClaim& claim) {
  return AnnotatedOr(claim.metadata(), claim.spec().storage_class_name());
}
std::string ClassOf(const PersistentVolume& volume) {
  return AnnotatedOr(volume.metadata(), volume.spec().storage_class_name());
}

bool NamesClass(const PersistentVolumeClaim& claim) {
  return HasAnnotation(claim.metadata(), kBetaClass) || claim.spec().has_storage_class_name();
}

bool IsDefault(const StorageClass& one) {
  for (const char* name :
       {"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}) {
    auto found = one.metadata().annotations().find(name);
    if (found != one.metadata().annotations().end() && found->second == "true") return true;
  }
  return false;
}

std::shared_ptr<const StorageClass> DefaultOf(const std::vector<std::shared_ptr<const StorageClass>>& all) {
  std::shared_ptr<const StorageClass> best;
  auto age = [](const StorageClass& one) { return api::FromTime(one.metadata().creation_timestamp()); };
  for (const auto& one : all) {
    if (!IsDefault(*one)) continue;
    const bool better = !best || age(*one) > age(*best) ||
                        (age(*one) == age(*best) && one->metadata().name() < best->metadata().name());
    if (better) best = one;
  }
  return best;
}

std::string ExternalProvisioner(const std::string& provisioner) {
  static const std::map<std::string_view, const char*> kMoved = {
      {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
      {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
      {"kubernetes.io/azure-file", "file.csi.azure.com"},
      {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
      {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
      {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
      {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"},
  };
  if (provisioner.rfind("kubernetes.io/", 0) != 0) return provisioner;
  auto moved = kMoved.find(provisioner);
  return moved == kMoved.end() ? "" : moved->second;
}

bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  const corev1::ObjectReference& ref = volume.spec().claim_ref();
  return volume.spec().has_claim_ref() && ref.name() == claim.metadata().name() &&
         ref.namespace_() == claim.metadata().namespace_() &&
         (ref.uid().empty() || ref.uid() == claim.metadata().uid());
}

bool SameMode(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  return (volume.spec().volume_mode() == "Block") == (claim.spec().volume_mode() == "Block");
}

std::string Mismatch(const PersistentVolume& volume, const PersistentVolumeClaim& claim) {
  if (volume.metadata().has_deletion_timestamp()) {
    return "the volume is marked for deletion \"" + volume.metadata().name() + "\"";
  }
  if (!IsLargeEnough(volume, claim)) return "requested PV is too small";
  if (ClassOf(volume) != ClassOf(claim)) return "storageClassName does not match";
  if (!SameAttributes(volume, claim)) return "volumeAttributesClassName does not match";
  if (!SameMode(volume, claim)) return "incompatible volumeMode";
  if (!OffersModes(volume, claim)) return "incompatible accessMode";
  return "";
}

Result<std::shared_ptr<const PersistentVolume>> BestFit(const Volumes& candidates,
                                                        const PersistentVolumeClaim& claim,
                                                        bool reserved_only) {
  api::LabelSelector selector;
  if (claim.spec().has_selector()) {
    KEELSON_ASSIGN_OR_RETURN(selector, api::LabelSelector::From(claim.spec().selector()));
  }
  const std::string wanted = ClassOf(claim);
  std::shared_ptr<const PersistentVolume> best;
  auto rank = [](const PersistentVolume& volume) {
    return std::tuple(volume.spec().access_modes_size(), StorageOf(volume.spec().capacity()),
                      volume.metadata().name());
  };
  for (const auto& volume : candidates) {
    const bool suits = !volume->metadata().has_deletion_timestamp() && IsLargeEnough(*volume, claim) &&
                       SameMode(*volume, claim) && OffersModes(*volume, claim) &&
                       SameAttributes(*volume, claim);
    if (!suits) continue;
    if (IsFor(*volume, claim)) return volume;
    if (reserved_only || volume->spec().has_claim_ref() || volume->status().phase() != "Available") continue;
    if (ClassOf(*volume) != wanted || !selector.Matches(volume->metadata().labels())) continue;
    if (!best || rank(*volume) < rank(*best)) best = volume;
  }
  return best;
}

}  // namespace keelson::controllers
