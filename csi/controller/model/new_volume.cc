#include "csi/controller/model/new_volume.h"

#include <algorithm>

#include <fmt/format.h>

#include "csi/controller/model/capability.h"
#include "csi/controller/model/class_parameters.h"
#include "csi/controller/model/names.h"
#include "csi/controller/model/secret_reference.h"
#include "lib/api/quantity.h"

namespace keelson::csi::controller {
namespace {

Error Wrong(std::string message) { return Error(Code::kInvalid, std::move(message)); }

// The references that the kubelet, attacher and resizer use later.
Result<> SetSecrets(const Strings& parameters, const SecretSubject& subject,
                    corev1::CSIPersistentVolumeSource& source) {
  using Mutable = corev1::SecretReference* (corev1::CSIPersistentVolumeSource::*)();
  static constexpr std::pair<SecretUse, Mutable> kFields[] = {
      {SecretUse::kControllerPublish,
       &corev1::CSIPersistentVolumeSource::mutable_controller_publish_secret_ref},
      {SecretUse::kNodeStage, &corev1::CSIPersistentVolumeSource::mutable_node_stage_secret_ref},
      {SecretUse::kNodePublish, &corev1::CSIPersistentVolumeSource::mutable_node_publish_secret_ref},
      {SecretUse::kControllerExpand,
       &corev1::CSIPersistentVolumeSource::mutable_controller_expand_secret_ref},
      {SecretUse::kNodeExpand, &corev1::CSIPersistentVolumeSource::mutable_node_expand_secret_ref},
  };
  for (const auto& [use, field] : kFields) {
    KEELSON_ASSIGN_OR_RETURN(const auto reference, ResolveSecret(use, parameters, subject));
    if (reference) *(source.*field)() = *reference;
  }
  return {};
}

void SetClaimRef(const Claim& claim, corev1::ObjectReference& out) {
  out.set_kind("PersistentVolumeClaim");
  out.set_api_version("v1");
  out.set_namespace_(claim.metadata().namespace_());
  out.set_name(claim.metadata().name());
  out.set_uid(claim.metadata().uid());
  out.set_resource_version(claim.metadata().resource_version());
}

Result<v1::CreateVolumeRequest> MakeRequest(const Claim& claim, const ProvisionSources& sources,
                                            const ClassParameters& parameters, const std::string& name,
                                            const ProvisionOptions& options) {
  v1::CreateVolumeRequest out;
  out.set_name(name);
  out.mutable_capacity_range()->set_required_bytes(RequestedBytes(claim));
  *out.mutable_parameters() = parameters.driver;
  if (options.extra_create_metadata) {
    (*out.mutable_parameters())["csi.storage.k8s.io/pvc/name"] = claim.metadata().name();
    (*out.mutable_parameters())["csi.storage.k8s.io/pvc/namespace"] = claim.metadata().namespace_();
    (*out.mutable_parameters())["csi.storage.k8s.io/pv/name"] = name;
  }
  const auto& mount_options = sources.storage_class->mount_options();
  KEELSON_ASSIGN_OR_RETURN(
      const std::vector<v1::VolumeCapability> capabilities,
      ClaimCapabilities(claim, {parameters.fs_type, {mount_options.begin(), mount_options.end()}},
                        options.multi_writer));
  for (const auto& capability : capabilities) *out.add_volume_capabilities() = capability;
  if (sources.content) *out.mutable_volume_content_source() = *sources.content;
  if (sources.topology) *out.mutable_accessibility_requirements() = *sources.topology;
  if (sources.attributes_class) *out.mutable_mutable_parameters() = sources.attributes_class->parameters();
  return out;
}

}  // namespace

std::string ClassOf(const Claim& claim) {
  const auto old = claim.metadata().annotations().find(kBetaStorageClass);
  return old == claim.metadata().annotations().end() ? claim.spec().storage_class_name() : old->second;
}

std::string ProvisionerOf(const Claim& claim) {
  const auto& annotations = claim.metadata().annotations();
  for (const char* key : {kStorageProvisioner, kBetaStorageProvisioner}) {
    if (const auto found = annotations.find(key); found != annotations.end()) return found->second;
  }
  return "";
}

int64_t RequestedBytes(const Claim& claim) {
  const auto& requests = claim.spec().resources().requests();
  const auto found = requests.find("storage");
  return found == requests.end() ? 0 : api::Amount::Of(found->second).Value();
}

Result<std::string> VolumeName(const Claim& claim, const ProvisionOptions& options) {
  if (options.name_prefix.empty()) return Wrong("Volume name prefix cannot be of length 0");
  std::string uid = claim.metadata().uid();
  if (uid.empty()) return Wrong("corrupted PVC object, it is missing UID");
  if (options.name_uuid_length >= 0) {
    uid.erase(std::remove(uid.begin(), uid.end(), '-'), uid.end());
    const auto length = static_cast<size_t>(options.name_uuid_length);
    if (length > uid.size()) return Wrong("--volume-name-uuid-length is beyond the length of a UID");
    uid.resize(length);
  }
  return options.name_prefix + "-" + uid;
}

Result<ProvisionPlan> PlanProvision(const Claim& claim, const ProvisionSources& sources,
                                    const ProvisionOptions& options) {
  const storagev1::StorageClass& storage_class = *sources.storage_class;
  if (claim.spec().has_selector()) return Wrong("claim Selector is not supported");
  if (sources.attributes_class && sources.attributes_class->driver_name() != options.driver) {
    return Wrong(fmt::format("VAC {} referenced in PVC is for driver {} which does not match driver name {}",
                             sources.attributes_class->metadata().name(),
                             sources.attributes_class->driver_name(), options.driver));
  }
  KEELSON_ASSIGN_OR_RETURN(const std::string name, VolumeName(claim, options));
  KEELSON_ASSIGN_OR_RETURN(const ClassParameters parameters,
                           ReadClassParameters(storage_class.parameters(), options.default_fs_type));
  ProvisionPlan plan;
  KEELSON_ASSIGN_OR_RETURN(plan.request, MakeRequest(claim, sources, parameters, name, options));

  SecretSubject subject{name, claim.metadata().namespace_(), claim.metadata().name(), {}};
  KEELSON_ASSIGN_OR_RETURN(plan.create_secret,
                           ResolveSecret(SecretUse::kProvisioner, storage_class.parameters(), subject));
  const auto& annotations = claim.metadata().annotations();
  subject.claim_annotations.insert(annotations.begin(), annotations.end());

  metav1::ObjectMeta& meta = *plan.volume.mutable_metadata();
  meta.set_name(name);
  meta.add_finalizers(kProvisionerFinalizer);
  (*meta.mutable_annotations())[kProvisionedBy] = options.driver;
  // Empty values tell the deleter that the class named no secret, whatever a later class says.
  (*meta.mutable_annotations())[kDeletionSecretName] = plan.create_secret ? plan.create_secret->name() : "";
  (*meta.mutable_annotations())[kDeletionSecretNamespace] =
      plan.create_secret ? plan.create_secret->namespace_() : "";

  corev1::PersistentVolumeSpec& spec = *plan.volume.mutable_spec();
  corev1::CSIPersistentVolumeSource& source = *spec.mutable_persistent_volume_source()->mutable_csi();
  source.set_driver(options.driver);
  if (!IsBlock(claim) && !parameters.fs_type.empty()) source.set_fs_type(parameters.fs_type);
  KEELSON_RETURN_IF_ERROR(SetSecrets(storage_class.parameters(), subject, source));
  *spec.mutable_access_modes() = claim.spec().access_modes();
  *spec.mutable_mount_options() = storage_class.mount_options();
  spec.set_persistent_volume_reclaim_policy(
      storage_class.has_reclaim_policy() ? storage_class.reclaim_policy() : "Delete");
  spec.set_storage_class_name(ClassOf(claim));
  if (claim.spec().has_volume_mode()) spec.set_volume_mode(claim.spec().volume_mode());
  if (sources.attributes_class) {
    spec.set_volume_attributes_class_name(sources.attributes_class->metadata().name());
  }
  SetClaimRef(claim, *spec.mutable_claim_ref());
  // The finalizer belongs to volumes that the deleter deletes.
  if (spec.persistent_volume_reclaim_policy() != "Delete") meta.clear_finalizers();
  return plan;
}

Volume FinishVolume(const ProvisionPlan& plan, const v1::Volume& created, const ProvisionOptions& options,
                    bool topology) {
  Volume out = plan.volume;
  corev1::PersistentVolumeSpec& spec = *out.mutable_spec();
  corev1::CSIPersistentVolumeSource& source = *spec.mutable_persistent_volume_source()->mutable_csi();
  source.set_volume_handle(created.volume_id());
  (*source.mutable_volume_attributes())[kProvisionerIdentity] = options.identity;
  for (const auto& [key, value] : created.volume_context()) {
    (*source.mutable_volume_attributes())[key] = value;
  }
  const auto& capabilities = plan.request.volume_capabilities();
  if (options.publish_read_only && capabilities.size() == 1 &&
      capabilities[0].access_mode().mode() == v1::VolumeCapability::AccessMode::MULTI_NODE_READER_ONLY) {
    source.set_read_only(true);
  }
  const int64_t bytes = created.capacity_bytes() > 0 ? created.capacity_bytes()
                                                     : plan.request.capacity_range().required_bytes();
  (*spec.mutable_capacity())["storage"] = api::Amount::FromBytes(bytes).ToQuantity();
  if (topology) {
    if (auto affinity = NodeAffinity(created.accessible_topology())) {
      *spec.mutable_node_affinity() = *std::move(affinity);
    }
  }
  return out;
}

}  // namespace keelson::csi::controller
