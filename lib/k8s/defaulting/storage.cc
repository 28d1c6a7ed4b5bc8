// Volumes of pods, persistent volumes and claims, storage classes and CSI drivers.
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace storagev1 = api::storage::v1;

namespace {

constexpr int32_t kFileMode = 0644;
constexpr int64_t kTokenSeconds = 3600;
constexpr int32_t kCertificateSeconds = 24 * 3600;

void DefaultFiles(google::protobuf::RepeatedPtrField<corev1::DownwardAPIVolumeFile>& files) {
  for (corev1::DownwardAPIVolumeFile& file : files) {
    if (!file.has_field_ref() || !file.field_ref().api_version().empty()) continue;
    file.mutable_field_ref()->set_api_version("v1");
  }
}

void DefaultProjected(corev1::ProjectedVolumeSource& projected) {
  if (!projected.has_default_mode()) projected.set_default_mode(kFileMode);
  for (corev1::VolumeProjection& source : *projected.mutable_sources()) {
    if (source.has_downward_api()) DefaultFiles(*source.mutable_downward_api()->mutable_items());
    if (source.has_service_account_token() && !source.service_account_token().has_expiration_seconds()) {
      source.mutable_service_account_token()->set_expiration_seconds(kTokenSeconds);
    }
    if (source.has_pod_certificate() && !source.pod_certificate().has_max_expiration_seconds()) {
      source.mutable_pod_certificate()->set_max_expiration_seconds(kCertificateSeconds);
    }
  }
}

void DefaultAzureDisk(corev1::AzureDiskVolumeSource& disk) {
  if (!disk.has_caching_mode()) disk.set_caching_mode("ReadWrite");
  if (!disk.has_kind()) disk.set_kind("Shared");
  if (!disk.has_fs_type()) disk.set_fs_type("ext4");
  if (!disk.has_read_only()) disk.set_read_only(false);
}

// These sources exist in pods and in persistent volumes, as separate types.
template <typename T>
void DefaultRbd(T& rbd) {
  if (rbd.pool().empty()) rbd.set_pool("rbd");
  if (rbd.user().empty()) rbd.set_user("admin");
  if (rbd.keyring().empty()) rbd.set_keyring("/etc/ceph/keyring");
}

template <typename T>
void DefaultScaleIo(T& scale_io) {
  if (scale_io.storage_mode().empty()) scale_io.set_storage_mode("ThinProvisioned");
  if (scale_io.fs_type().empty()) scale_io.set_fs_type("xfs");
}

template <typename T>
void DefaultSharedSources(T& source) {
  if (source.has_host_path() && !source.host_path().has_type()) source.mutable_host_path()->set_type("");
  if (source.has_iscsi() && source.iscsi().iscsi_interface().empty()) {
    source.mutable_iscsi()->set_iscsi_interface("default");
  }
  if (source.has_rbd()) DefaultRbd(*source.mutable_rbd());
  if (source.has_azure_disk()) DefaultAzureDisk(*source.mutable_azure_disk());
  if (source.has_scale_io()) DefaultScaleIo(*source.mutable_scale_io());
}

void DefaultPersistentVolume(corev1::PersistentVolume& volume) {
  if (volume.status().phase().empty()) volume.mutable_status()->set_phase("Pending");
  corev1::PersistentVolumeSpec& spec = *volume.mutable_spec();
  if (spec.persistent_volume_reclaim_policy().empty()) spec.set_persistent_volume_reclaim_policy("Retain");
  DefaultPersistentVolumeSpec(spec);
}

void DefaultStorageClass(storagev1::StorageClass& object) {
  if (!object.has_reclaim_policy()) object.set_reclaim_policy("Delete");
  if (!object.has_volume_binding_mode()) object.set_volume_binding_mode("Immediate");
}

void DefaultCsiDriver(storagev1::CSIDriver& object) {
  storagev1::CSIDriverSpec& spec = *object.mutable_spec();
  if (!spec.has_attach_required()) spec.set_attach_required(true);
  if (!spec.has_pod_info_on_mount()) spec.set_pod_info_on_mount(false);
  if (!spec.has_storage_capacity()) spec.set_storage_capacity(false);
  if (!spec.has_fs_group_policy()) spec.set_fs_group_policy("ReadWriteOnceWithFSType");
  if (spec.volume_lifecycle_modes().empty()) spec.add_volume_lifecycle_modes("Persistent");
  if (!spec.has_requires_republish()) spec.set_requires_republish(false);
  if (!spec.has_se_linux_mount()) spec.set_se_linux_mount(false);
}

void DefaultAttachment(storagev1::VolumeAttachment& object) {
  if (!object.spec().source().has_inline_volume_spec()) return;
  corev1::PersistentVolumeSpec& spec = *object.mutable_spec()->mutable_source()->mutable_inline_volume_spec();
  RoundQuantities(*spec.mutable_capacity());
  if (spec.has_persistent_volume_source()) DefaultSharedSources(*spec.mutable_persistent_volume_source());
}

}  // namespace

void DefaultVolume(corev1::Volume& volume) {
  corev1::VolumeSource& source = *volume.mutable_volume_source();
  if (source.ByteSizeLong() == 0) source.mutable_empty_dir();
  DefaultSharedSources(source);
  if (source.has_secret() && !source.secret().has_default_mode()) {
    source.mutable_secret()->set_default_mode(kFileMode);
  }
  if (source.has_config_map() && !source.config_map().has_default_mode()) {
    source.mutable_config_map()->set_default_mode(kFileMode);
  }
  if (source.has_downward_api()) {
    corev1::DownwardAPIVolumeSource& downward = *source.mutable_downward_api();
    if (!downward.has_default_mode()) downward.set_default_mode(kFileMode);
    DefaultFiles(*downward.mutable_items());
  }
  if (source.has_projected()) DefaultProjected(*source.mutable_projected());
  if (source.has_ephemeral() && source.ephemeral().has_volume_claim_template()) {
    DefaultClaimSpec(*source.mutable_ephemeral()->mutable_volume_claim_template()->mutable_spec());
  }
  if (source.has_image() && source.image().pull_policy().empty()) {
    source.mutable_image()->set_pull_policy(std::string(PullPolicyOf(source.image().reference())));
  }
}

void DefaultPersistentVolumeSpec(corev1::PersistentVolumeSpec& spec) {
  if (!spec.has_volume_mode()) spec.set_volume_mode("Filesystem");
  RoundQuantities(*spec.mutable_capacity());
  if (spec.has_persistent_volume_source()) DefaultSharedSources(*spec.mutable_persistent_volume_source());
}

void DefaultClaimSpec(corev1::PersistentVolumeClaimSpec& spec) {
  if (!spec.has_volume_mode()) spec.set_volume_mode("Filesystem");
  if (!spec.has_resources()) return;
  RoundQuantities(*spec.mutable_resources()->mutable_limits());
  RoundQuantities(*spec.mutable_resources()->mutable_requests());
}

void DefaultClaim(corev1::PersistentVolumeClaim& claim) {
  DefaultClaimSpec(*claim.mutable_spec());
  if (claim.status().phase().empty()) claim.mutable_status()->set_phase("Pending");
}

void RegisterStorageDefaults(DefaultTable& table) {
  table.Add<corev1::PersistentVolume, DefaultPersistentVolume>();
  table.Add<corev1::PersistentVolumeClaim, DefaultClaim>();
  table.Add<storagev1::StorageClass, DefaultStorageClass>();
  table.Add<storagev1::CSIDriver, DefaultCsiDriver>();
  table.Add<storagev1::VolumeAttachment, DefaultAttachment>();
}

}  // namespace keelson::k8s
