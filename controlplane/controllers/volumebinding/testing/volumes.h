// Claims and volumes for tests of the binder.
#pragma once

#include <string>
#include <vector>

#include "controlplane/controllers/volumebinding/match.h"

namespace keelson::controllers {

inline PersistentVolumeClaim ClaimNamed(const std::string& name, const char* size = "1Gi",
                                        const char* class_name = "slow",
                                        std::vector<std::string> modes = {"ReadWriteOnce"}) {
  PersistentVolumeClaim claim;
  claim.mutable_metadata()->set_name(name);
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_status()->set_phase("Pending");
  corev1::PersistentVolumeClaimSpec& spec = *claim.mutable_spec();
  (*spec.mutable_resources()->mutable_requests())["storage"].set_string(size);
  if (class_name) spec.set_storage_class_name(class_name);
  for (const std::string& mode : modes) spec.add_access_modes(mode);
  return claim;
}

inline PersistentVolume VolumeNamed(const std::string& name, const char* size = "1Gi",
                                    const char* class_name = "slow",
                                    std::vector<std::string> modes = {"ReadWriteOnce"}) {
  PersistentVolume volume;
  volume.mutable_metadata()->set_name(name);
  volume.mutable_status()->set_phase("Available");
  corev1::PersistentVolumeSpec& spec = *volume.mutable_spec();
  (*spec.mutable_capacity())["storage"].set_string(size);
  spec.set_storage_class_name(class_name);
  spec.set_persistent_volume_reclaim_policy("Retain");
  for (const std::string& mode : modes) spec.add_access_modes(mode);
  return volume;
}

inline PersistentVolume MeantFor(PersistentVolume volume, const std::string& claim,
                                 const std::string& uid = "") {
  corev1::ObjectReference& ref = *volume.mutable_spec()->mutable_claim_ref();
  ref.set_namespace_("default");
  ref.set_name(claim);
  if (!uid.empty()) ref.set_uid(uid);
  return volume;
}

inline StorageClass ClassNamed(const std::string& name, const char* provisioner = "example.com/disk",
                               const char* mode = "Immediate") {
  StorageClass out;
  out.mutable_metadata()->set_name(name);
  out.set_provisioner(provisioner);
  out.set_volume_binding_mode(mode);
  return out;
}

}  // namespace keelson::controllers
