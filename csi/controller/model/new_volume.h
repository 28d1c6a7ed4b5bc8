// What a claim asks of a driver, and the volume that comes of it: external-provisioner's plan of one claim. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "csi/controller/model/topology.h"
#include "csi/controller/model/wire.h"
#include "lib/base/error.h"

namespace keelson::csi::controller {

struct ProvisionOptions {
  std::string driver, identity;
  std::string name_prefix = "pvc";  // --volume-name-prefix
  int name_uuid_length = -1;        // --volume-name-uuid-length; -1: the whole UID with its dashes
  std::string default_fs_type;
  bool extra_create_metadata = false;
  bool multi_writer = false;       // the driver has SINGLE_NODE_MULTI_WRITER
  bool publish_read_only = false;  // --controller-publish-readonly
};

// Objects that the claim refers to.
struct ProvisionSources {
  const storagev1::StorageClass* storage_class = nullptr;  // required
  const storagev1::VolumeAttributesClass* attributes_class = nullptr;
  std::optional<v1::VolumeContentSource> content;
  std::optional<v1::TopologyRequirement> topology;
};

struct ProvisionPlan {
  v1::CreateVolumeRequest request;                       // without secrets
  std::optional<corev1::SecretReference> create_secret;  // for CreateVolume, and later DeleteVolume
  Volume volume;                                         // what does not depend on the driver's answer
};

// pvc-UID. kInvalid: no prefix, no UID, a length beyond the UID's.
Result<std::string> VolumeName(const Claim& claim, const ProvisionOptions& options);
// The class that the claim names, also by the old annotation.
std::string ClassOf(const Claim& claim);
// The driver that the binder has annotated; empty: none.
std::string ProvisionerOf(const Claim& claim);
int64_t RequestedBytes(const Claim& claim);

// kInvalid, in external-provisioner's words, for what the driver is not to be asked for.
Result<ProvisionPlan> PlanProvision(const Claim& claim, const ProvisionSources& sources,
                                    const ProvisionOptions& options);

// The volume with what the driver has answered. `created` has at least the requested capacity, or none (unknown).
Volume FinishVolume(const ProvisionPlan& plan, const v1::Volume& created, const ProvisionOptions& options,
                    bool topology);

}  // namespace keelson::csi::controller
