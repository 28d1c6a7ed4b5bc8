// What the API server has about a claim and what it depends on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/why/events.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

namespace storagev1 = api::storage::v1;

struct ClaimView {
  corev1::PersistentVolumeClaim claim;
  std::optional<corev1::PersistentVolume>
      volume;  // that the claim names; nullopt: none, or it does not exist
  std::vector<storagev1::StorageClass> classes;
  std::vector<storagev1::CSIDriver> drivers;
  std::vector<storagev1::CSINode> driver_nodes;
  std::vector<storagev1::CSIStorageCapacity> capacities;
  std::vector<storagev1::VolumeAttachment> attachments;  // of the volume
  std::vector<corev1::Node> nodes;
  std::vector<corev1::Pod> pods;  // that use the claim
  Events events;                  // of the claim and of these pods, the oldest first

  std::string Name() const;                      // NAMESPACE/NAME
  const storagev1::StorageClass* Class() const;  // that the claim names; null: none, or it does not exist
  std::vector<std::string> RunningPods() const;  // names of pods that are not over
  // The last event of the claim, or of the pod, with one of these reasons; null: none.
  const corev1::Event* LastOfClaim(const std::vector<std::string>& reasons) const;
  const corev1::Event* LastOfPod(const std::string& pod, const std::vector<std::string>& reasons) const;
};

Result<ClaimView> ReadClaim(const client::RestClient& api, const std::string& ns, const std::string& name);
// Whether the pod mounts the claim, by name or as its generic ephemeral volume.
bool UsesClaim(const corev1::Pod& pod, const std::string& claim);
// The class that the claim names in its field or in the annotation of old; nullopt: it leaves that to the default.
std::optional<std::string> ClassNameOf(const corev1::PersistentVolumeClaim& claim);

}  // namespace keelson::ctl
