// Annotations and finalizers that the stock sidecars, the control plane and users know.
#pragma once

namespace keelson::csi::controller {

// On claims, by the volume binder and the scheduler.
inline constexpr char kStorageProvisioner[] = "volume.kubernetes.io/storage-provisioner";
inline constexpr char kBetaStorageProvisioner[] = "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
inline constexpr char kBetaStorageClass[] = "volume.beta.kubernetes.io/storage-class";

// On volumes.
inline constexpr char kProvisionedBy[] = "pv.kubernetes.io/provisioned-by";
inline constexpr char kMigratedTo[] = "pv.kubernetes.io/migrated-to";
inline constexpr char kDeletionSecretName[] = "volume.kubernetes.io/provisioner-deletion-secret-name";
inline constexpr char kDeletionSecretNamespace[] =
    "volume.kubernetes.io/provisioner-deletion-secret-namespace";
// On attachments: the node's id in the driver, for a node that is gone when the volume is detached.
inline constexpr char kNodeId[] = "csi.alpha.kubernetes.io/node-id";
// In spec.csi.volumeAttributes.
inline constexpr char kProvisionerIdentity[] = "storage.kubernetes.io/csiProvisionerIdentity";

// Volumes with policy Delete keep it until the driver has deleted what is behind them.
inline constexpr char kProvisionerFinalizer[] = "external-provisioner.volume.kubernetes.io/finalizer";
// Claims keep it while they are cloned.
inline constexpr char kCloningProtection[] = "provisioner.storage.kubernetes.io/cloning-protection";

}  // namespace keelson::csi::controller
