// What a pod's CSI volume, its PersistentVolume and the CSIDriver object say together. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/volume/csi/node_client.h"
#include "kubelet/volume/csi/volume_data.h"
#include "kubelet/volume/plugin.h"
#include "lib/api/proto/storage_v1.pb.h"

namespace keelson::kubelet::csi {

using CsiDriver = api::storage::v1::CSIDriver;

struct SecretRef {
  std::string ns, name;
};

struct VolumeSource {
  std::string driver, handle, fs_type;
  bool ephemeral = false, read_only = false;
  std::vector<std::string> access_modes;  // of the PersistentVolume
  std::vector<std::string> mount_options;
  Values attributes;
  std::optional<SecretRef> stage_secret, publish_secret, expand_secret;
};
// `input` has a CSI volume.
VolumeSource SourceOf(const VolumeInput& input);
VolumeData DataOf(const VolumeInput& input, const VolumeSource& source);

// Below, `driver` is null if there is no CSIDriver object.

bool NeedsAttaching(const CsiDriver* driver, const VolumeSource& source);
// kInvalid, in upstream's words: the driver does not have volumes of this sort.
Result<> CheckLifecycleMode(const CsiDriver* driver, const VolumeSource& source);
// Whether the kubelet applies the pod's fsGroup to the volume. kInvalid: the driver's policy is not valid.
Result<bool> AppliesFsGroup(const CsiDriver* driver, const VolumeSource& source, const corev1::Pod& pod);
// Whether the driver publishes again at each sync of the pod.
bool RequiresRepublish(const CsiDriver* driver);

AccessMode AccessModeOf(const VolumeSource& source, const NodeCapabilities& capabilities);
// As a file system. Of drivers that apply fsGroup themselves it has the pod's.
VolumeCapability MountCapability(const VolumeSource& source, const NodeCapabilities& capabilities,
                                 const corev1::Pod& pod);
VolumeCapability BlockCapability(const VolumeSource& source, const NodeCapabilities& capabilities);

// The context keys csi.storage.k8s.io/... about the pod, for drivers with podInfoOnMount; else none.
Values PodInfo(const CsiDriver* driver, const VolumeSource& source, const corev1::Pod& pod);

inline constexpr char kTokensKey[] = "csi.storage.k8s.io/serviceAccount.tokens";
// By audience: {"":{"token":"...","expirationTimestamp":"2026-01-01T00:00:00Z"}}.
std::string TokensJson(const std::map<std::string, ObjectSource::Token>& tokens);

}  // namespace keelson::kubelet::csi
