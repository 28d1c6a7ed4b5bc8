// Annotations, finalizers and labels of snapshots that the stock snapshot-controller, the stock csi-snapshotter and users
// know.
#pragma once

namespace keelson::csi::controller {

// On classes.
inline constexpr char kDefaultSnapshotClass[] = "snapshot.storage.kubernetes.io/is-default-class";

// On contents. The driver may be at work on CreateSnapshot; the snapshot is going; the secret for its deletion.
inline constexpr char kBeingCreated[] = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
inline constexpr char kBeingDeleted[] = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
inline constexpr char kSnapshotSecretName[] = "snapshot.storage.kubernetes.io/deletion-secret-name";
inline constexpr char kSnapshotSecretNamespace[] = "snapshot.storage.kubernetes.io/deletion-secret-namespace";
// A member of a group snapshot, which its group's controller makes.
inline constexpr char kGroupHandle[] = "groupsnapshot.storage.kubernetes.io/volumeGroupSnapshotHandle";
// Label: the node whose driver has the snapshot.
inline constexpr char kManagedByNode[] = "snapshot.storage.kubernetes.io/managed-by";

inline constexpr char kContentFinalizer[] =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
inline constexpr char kSnapshotBoundFinalizer[] =
    "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
inline constexpr char kSnapshotSourceFinalizer[] =
    "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
inline constexpr char kClaimSourceFinalizer[] = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

// For the driver, with --extra-create-metadata.
inline constexpr char kParameterSnapshotName[] = "csi.storage.k8s.io/volumesnapshot/name";
inline constexpr char kParameterSnapshotNamespace[] = "csi.storage.k8s.io/volumesnapshot/namespace";
inline constexpr char kParameterContentName[] = "csi.storage.k8s.io/volumesnapshotcontent/name";

}  // namespace keelson::csi::controller
