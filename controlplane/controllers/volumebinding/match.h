// Matches volumes to claims. Pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::controllers {

using corev1::PersistentVolume;
using corev1::PersistentVolumeClaim;
using StorageClass = api::storage::v1::StorageClass;
using Volumes = std::vector<std::shared_ptr<const PersistentVolume>>;

// Annotations shared by binder, scheduler and provisioners.
inline constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
inline constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
inline constexpr char kProvisionedBy[] = "pv.kubernetes.io/provisioned-by";
inline constexpr char kMigratedTo[] = "pv.kubernetes.io/migrated-to";
inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
inline constexpr char kProvisioner[] = "volume.kubernetes.io/storage-provisioner";
inline constexpr char kBetaProvisioner[] = "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr char kBetaClass[] = "volume.beta.kubernetes.io/storage-class";

bool HasAnnotation(const metav1::ObjectMeta& meta, std::string_view name);

// The class name, from the beta annotation or the spec; "" is the class of objects without one.
std::string ClassOf(const PersistentVolumeClaim& claim);
std::string ClassOf(const PersistentVolume& volume);
// True when the claim sets a class, even "": the default class does not apply.
bool NamesClass(const PersistentVolumeClaim& claim);
bool IsDefault(const StorageClass& one);
// The default class: the newest annotated one, by name if equally old; null without one.
std::shared_ptr<const StorageClass> DefaultOf(const std::vector<std::shared_ptr<const StorageClass>>& all);

// The CSI driver name for a provisioner: for an in-tree plugin, the driver that it migrated to. Empty for a
// "kubernetes.io/..." provisioner without one.
std::string ExternalProvisioner(const std::string& provisioner);

// True when claimRef names this claim, with its UID or without a UID.
bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim);
// True when the volume modes match; the default is Filesystem.
bool SameMode(const PersistentVolume& volume, const PersistentVolumeClaim& claim);

// Why the volume that the claim names cannot bind to it, in upstream's words; empty: it can.
std::string Mismatch(const PersistentVolume& volume, const PersistentVolumeClaim& claim);

// Returns the volume in `candidates` that is pre-bound to the claim; else, unless `reserved_only`, the
// available one with the fewest access modes and the smallest capacity. Null: none matches. Error: the
// claim's selector is invalid.
Result<std::shared_ptr<const PersistentVolume>> BestFit(const Volumes& candidates,
                                                        const PersistentVolumeClaim& claim,
                                                        bool reserved_only);

}  // namespace keelson::controllers
