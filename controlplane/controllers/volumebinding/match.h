// Which volume fits a claim. Pure.
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

// What binder, scheduler and provisioners tell each other by annotations.
inline constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
inline constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
inline constexpr char kProvisionedBy[] = "pv.kubernetes.io/provisioned-by";
inline constexpr char kMigratedTo[] = "pv.kubernetes.io/migrated-to";
inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
inline constexpr char kProvisioner[] = "volume.kubernetes.io/storage-provisioner";
inline constexpr char kBetaProvisioner[] = "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr char kBetaClass[] = "volume.beta.kubernetes.io/storage-class";

bool HasAnnotation(const metav1::ObjectMeta& meta, std::string_view name);

// The class by name, from the annotation of old or the spec; "" is a class too: that of what has none.
std::string ClassOf(const PersistentVolumeClaim& claim);
std::string ClassOf(const PersistentVolume& volume);
// Names a class, be it "": no default is put there any more.
bool NamesClass(const PersistentVolumeClaim& claim);
bool IsDefault(const StorageClass& one);
// The youngest of those that are annotated as default, by name among equals; null without one.
std::shared_ptr<const StorageClass> DefaultOf(const std::vector<std::shared_ptr<const StorageClass>>& all);

// Who provisions for a class, or has provisioned a volume: of drivers that have moved out of Kubernetes, the
// name under which they go on as CSI drivers. Empty: "kubernetes.io/...", which nobody serves.
std::string ExternalProvisioner(const std::string& provisioner);

// claimRef names this claim, with its uid or with none.
bool IsFor(const PersistentVolume& volume, const PersistentVolumeClaim& claim);
// A volume that says nothing is a file system, and so is a claim.
bool SameMode(const PersistentVolume& volume, const PersistentVolumeClaim& claim);

// Why the volume that a claim names cannot be bound to it, in upstream's words; empty: it can.
std::string Mismatch(const PersistentVolume& volume, const PersistentVolumeClaim& claim);

// Of `candidates` the one that is meant for the claim already, else, unless `reserved_only`, the available
// one with the fewest access modes and the least capacity. Null: none fits. An error: the claim's selector
// cannot be read.
Result<std::shared_ptr<const PersistentVolume>> BestFit(const Volumes& candidates,
                                                        const PersistentVolumeClaim& claim,
                                                        bool reserved_only);

}  // namespace keelson::controllers
