// The sources of PersistentVolumes.
#include <algorithm>

#include "lib/base/text.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace {

constexpr char kHostPort[] = "must be a host:port pair or multiple pairs separated by commas";

void Require(const std::string& value, const char* field, const Path& path, FieldErrors& errors) {
  if (value.empty()) errors.push_back(Required(path.Child(field)));
}

void CheckNoBacksteps(const std::string& value, const Path& path, FieldErrors& errors) {
  for (std::string_view part : Split(value, '/')) {
    if (part != "..") continue;
    errors.push_back(Invalid(path, value, "must not contain '..'"));
    return;
  }
}

void CheckSecretNames(const corev1::SecretReference& secret, const Path& path, FieldErrors& errors) {
  Require(secret.name(), "name", path, errors);
  Require(secret.namespace_(), "namespace", path, errors);
}

void CheckHostPath(const corev1::HostPathVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.path().empty()) {
    errors.push_back(Required(path.Child("path")));
    return;
  }
  CheckNoBacksteps(source.path(), path.Child("path"), errors);
  if (source.has_type()) {
    CheckOneOf(
        source.type(),
        {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"},
        path.Child("type"), errors);
  }
}

void CheckGlusterfs(const corev1::GlusterfsPersistentVolumeSource& source, const Path& path,
                    FieldErrors& errors) {
  Require(source.endpoints(), "endpoints", path, errors);
  Require(source.path(), "path", path, errors);
  if (!source.has_endpoints_namespace()) return;
  const Path ns = path.Child("endpointsNamespace");
  if (source.endpoints_namespace().empty()) {
    errors.push_back(Invalid(ns, "", "if the endpointnamespace is set, it must be a valid namespace name"));
  } else {
    AddProblems(CheckDns1123Label(source.endpoints_namespace()), source.endpoints_namespace(), ns, errors);
  }
}

void CheckFlocker(const corev1::FlockerVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.dataset_name().empty() && source.dataset_uuid().empty()) {
    errors.push_back(Required(path, "one of datasetName and datasetUUID is required"));
  }
  if (!source.dataset_name().empty() && !source.dataset_uuid().empty()) {
    errors.push_back(
        InvalidRaw(path, "\"resource\"", "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (source.dataset_name().find('/') != std::string::npos) {
    errors.push_back(Invalid(path.Child("datasetName"), source.dataset_name(), "must not contain '/'"));
  }
}

void CheckNfs(const corev1::NFSVolumeSource& source, const Path& path, FieldErrors& errors) {
  Require(source.server(), "server", path, errors);
  Require(source.path(), "path", path, errors);
  if (!source.path().starts_with("/")) {
    errors.push_back(Invalid(path.Child("path"), source.path(), "must be an absolute path"));
  }
}

void CheckQuobyte(const corev1::QuobyteVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.registry().empty()) {
    errors.push_back(Required(path.Child("registry"), kHostPort));
  } else if (source.tenant().size() >= 65) {
    errors.push_back(
        Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"));
  } else {
    for (std::string_view pair : Split(source.registry(), ',')) {
      if (pair.find(':') == std::string_view::npos) {
        errors.push_back(Invalid(path.Child("registry"), source.registry(), kHostPort));
      }
    }
  }
  Require(source.volume(), "volume", path, errors);
}

bool IsIqn(std::string_view name) {
  // iqn.yyyy-mm.reversed.domain[:anything]
  if (name.size() < 13 || name[8] != '-' || name[11] != '.') return false;
  for (int i : {4, 5, 6, 7, 9, 10}) {
    if (name[i] < '0' || name[i] > '9') return false;
  }
  name.remove_prefix(12);
  const size_t colon = name.find(':');
  const std::string_view domain = name.substr(0, colon);
  const auto in_domain = [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
  };
  if (domain.empty() || !std::all_of(domain.begin(), domain.end(), in_domain)) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view rest = name.substr(colon + 1);
  return !rest.empty() && rest.find_first_of(",;*&$| \t\r\n") == std::string_view::npos;
}

bool IsHexName(std::string_view name, size_t length) {
  const std::string_view rest = name.substr(4);
  const auto alnum = [](char c) { return isalnum(static_cast<unsigned char>(c)) != 0; };
  return name.size() > 4 && name[3] == '.' && rest.size() == length &&
         std::all_of(rest.begin(), rest.end(), alnum);
}

void CheckIscsiName(const std::string& name, const Path& path, FieldErrors& errors) {
  const bool iqn = name.starts_with("iqn"), eui = name.starts_with("eui"), naa = name.starts_with("naa");
  if (!iqn && !eui && !naa) {
    errors.push_back(Invalid(path, name, "must be valid format starting with iqn, eui, or naa"));
    return;
  }
  const bool valid = iqn ? IsIqn(name) : name.size() > 4 && IsHexName(name, eui ? 16 : 32);
  if (!valid) errors.push_back(Invalid(path, name, "must be valid format"));
}

void CheckIscsi(const corev1::ISCSIPersistentVolumeSource& source, const Path& path, FieldErrors& errors) {
  Require(source.target_portal(), "targetPortal", path, errors);
  if (source.iqn().empty()) {
    errors.push_back(Required(path.Child("iqn")));
  } else {
    CheckIscsiName(source.iqn(), path.Child("iqn"), errors);
  }
  CheckRange(source.lun(), 0, 255, path.Child("lun"), errors);
  if ((source.chap_auth_discovery() || source.chap_auth_session()) && !source.has_secret_ref()) {
    errors.push_back(Required(path.Child("secretRef")));
  }
  if (source.has_secret_ref()) {
    Require(source.secret_ref().name(), "name", path.Child("secretRef"), errors);
  }
  if (source.has_initiator_name()) {
    CheckIscsiName(source.initiator_name(), path.Child("initiatorname"), errors);
  }
}

void CheckCinder(const corev1::CinderPersistentVolumeSource& source, const Path& path, FieldErrors& errors) {
  Require(source.volume_id(), "volumeID", path, errors);
  if (source.has_secret_ref()) CheckSecretNames(source.secret_ref(), path.Child("secretRef"), errors);
}

void CheckFc(const corev1::FCVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.target_wwns().empty() && source.wwids().empty()) {
    errors.push_back(
        Required(path.Child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"));
  }
  if (!source.target_wwns().empty() && !source.wwids().empty()) {
    errors.push_back(InvalidRaw(path.Child("targetWWNs"), PrintStrings(source.target_wwns()),
                                "targetWWNs and wwids can not be specified simultaneously"));
  }
  if (source.target_wwns().empty()) return;
  if (!source.has_lun()) {
    errors.push_back(Required(path.Child("lun"), "lun is required if targetWWNs is specified"));
  } else {
    CheckRange(source.lun(), 0, 255, path.Child("lun"), errors);
  }
}

void CheckFlex(const corev1::FlexPersistentVolumeSource& source, const Path& path, FieldErrors& errors) {
  Require(source.driver(), "driver", path, errors);
  const Path options = path.Child("options");
  for (const std::string& key : SortedKeys(source.options())) {
    const std::string ns = "." + Lower(std::string_view(key).substr(0, key.find('/')));
    if (ns.ends_with(".kubernetes.io") || ns.ends_with(".k8s.io")) {
      errors.push_back(Invalid(options.Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"));
    }
  }
}

void CheckAzureFile(const corev1::AzureFilePersistentVolumeSource& source, const Path& path,
                    FieldErrors& errors) {
  Require(source.secret_name(), "secretName", path, errors);
  Require(source.share_name(), "shareName", path, errors);
  if (source.has_secret_namespace()) Require(source.secret_namespace(), "secretNamespace", path, errors);
}

void CheckAzureDisk(const corev1::AzureDiskVolumeSource& source, const Path& path, FieldErrors& errors) {
  Require(source.disk_name(), "diskName", path, errors);
  Require(source.disk_uri(), "diskURI", path, errors);
  if (source.has_caching_mode()) {
    CheckOneOf(source.caching_mode(), {"None", "ReadOnly", "ReadWrite"}, path.Child("cachingMode"), errors);
  }
  if (source.has_kind()) {
    CheckOneOf(source.kind(), {"Dedicated", "Managed", "Shared"}, path.Child("kind"), errors);
  }
  const bool managed = source.kind() == "Managed";
  if (!source.disk_uri().starts_with(managed ? "/subscriptions" : "https://")) {
    const std::string_view form =
        managed ? "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/"
                  "{disk-id}"
                : "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    errors.push_back(NotSupported(path.Child("diskURI"), source.disk_uri(), {form}));
  }
}

void CheckScaleIo(const corev1::ScaleIOPersistentVolumeSource& source, const Path& path,
                  FieldErrors& errors) {
  Require(source.gateway(), "gateway", path, errors);
  Require(source.system(), "system", path, errors);
  Require(source.volume_name(), "volumeName", path, errors);
}

void CheckStorageOs(const corev1::StorageOSPersistentVolumeSource& source, const Path& path,
                    FieldErrors& errors) {
  CheckName(source.volume_name(), CheckDns1123Label, path.Child("volumeName"), errors);
  if (!source.volume_namespace().empty()) {
    AddProblems(CheckDns1123Label(source.volume_namespace()), source.volume_namespace(),
                path.Child("volumeNamespace"), errors);
  }
  if (!source.has_secret_ref()) return;
  const Path secret = path.Child("secretRef");
  Require(source.secret_ref().name(), "name", secret, errors);
  Require(source.secret_ref().namespace_(), "namespace", secret, errors);
}

void CheckCsi(const corev1::CSIPersistentVolumeSource& source, const Path& path, FieldErrors& errors) {
  CheckCsiDriverName(source.driver(), path.Child("driver"), errors);
  Require(source.volume_handle(), "volumeHandle", path, errors);
  const auto secret = [&](bool set, const corev1::SecretReference& ref, const char* field) {
    if (!set) return;
    const Path place = path.Child(field);
    CheckName(ref.name(), CheckDns1123Subdomain, place.Child("name"), errors);
    CheckName(ref.namespace_(), CheckDns1123Label, place.Child("namespace"), errors);
  };
  secret(source.has_controller_publish_secret_ref(), source.controller_publish_secret_ref(),
         "controllerPublishSecretRef");
  secret(source.has_controller_expand_secret_ref(), source.controller_expand_secret_ref(),
         "controllerExpandSecretRef");
  secret(source.has_node_publish_secret_ref(), source.node_publish_secret_ref(), "nodePublishSecretRef");
  secret(source.has_node_expand_secret_ref(), source.node_expand_secret_ref(), "nodeExpandSecretRef");
}

}  // namespace

void CheckVolumeSource(const corev1::PersistentVolumeSpec& spec, const Path& path, FieldErrors& errors) {
  const corev1::PersistentVolumeSource& source = spec.persistent_volume_source();
  int sources = 0;
  // Whether to check this source: a second one only gets an error.
  const auto take = [&](bool set, const Path& place) {
    if (!set) return false;
    if (++sources == 1) return true;
    errors.push_back(Forbidden(place, "may not specify more than 1 volume type"));
    return false;
  };
  const auto one = [&](bool set, const auto& value, const char* field, auto check) {
    const Path place = path.Child(field);
    if (take(set, place)) check(value, place, errors);
  };
  // Sources that only need one or two fields.
  const auto plain = [&](bool set, const char* field,
                         std::initializer_list<std::pair<const char*, bool>> given) {
    const Path place = path.Child(field);
    if (!take(set, place)) return;
    for (const auto& [name, present] : given) {
      if (!present) errors.push_back(Required(place.Child(name)));
    }
  };
  const auto disk = [&](bool set, const char* field, const char* id, const std::string& name,
                        int32_t partition) {
    const Path place = path.Child(field);
    if (!take(set, place)) return;
    if (name.empty()) errors.push_back(Required(place.Child(id)));
    CheckRange(partition, 0, 255, place.Child("partition"), errors);
  };
  one(source.has_host_path(), source.host_path(), "hostPath", CheckHostPath);
  disk(source.has_gce_persistent_disk(), "gcePersistentDisk", "pdName",
       source.gce_persistent_disk().pd_name(), source.gce_persistent_disk().partition());
  disk(source.has_aws_elastic_block_store(), "awsElasticBlockStore", "volumeID",
       source.aws_elastic_block_store().volume_id(), source.aws_elastic_block_store().partition());
  one(source.has_glusterfs(), source.glusterfs(), "glusterfs", CheckGlusterfs);
  one(source.has_flocker(), source.flocker(), "flocker", CheckFlocker);
  one(source.has_nfs(), source.nfs(), "nfs", CheckNfs);
  plain(source.has_rbd(), "rbd",
        {{"monitors", !source.rbd().monitors().empty()}, {"image", !source.rbd().image().empty()}});
  one(source.has_quobyte(), source.quobyte(), "quobyte", CheckQuobyte);
  plain(source.has_cephfs(), "cephfs", {{"monitors", !source.cephfs().monitors().empty()}});
  one(source.has_iscsi(), source.iscsi(), "iscsi", CheckIscsi);
  one(source.has_cinder(), source.cinder(), "cinder", CheckCinder);
  one(source.has_fc(), source.fc(), "fc", CheckFc);
  one(source.has_flex_volume(), source.flex_volume(), "flexVolume", CheckFlex);
  one(source.has_azure_file(), source.azure_file(), "azureFile", CheckAzureFile);
  plain(source.has_vsphere_volume(), "vsphereVolume",
        {{"volumePath", !source.vsphere_volume().volume_path().empty()}});
  plain(source.has_photon_persistent_disk(), "photonPersistentDisk",
        {{"pdID", !source.photon_persistent_disk().pd_id().empty()}});
  plain(source.has_portworx_volume(), "portworxVolume",
        {{"volumeID", !source.portworx_volume().volume_id().empty()}});
  one(source.has_azure_disk(), source.azure_disk(), "azureDisk", CheckAzureDisk);
  one(source.has_scale_io(), source.scale_io(), "scaleIO", CheckScaleIo);
  if (take(source.has_local(), path.Child("local"))) {
    const Path place = path.Child("local");
    Require(source.local().path(), "path", place, errors);
    CheckNoBacksteps(source.local().path(), place.Child("path"), errors);
    if (!spec.has_node_affinity()) {
      errors.push_back(Required(path.Child("nodeAffinity"), "Local volume requires node affinity"));
    }
  }
  one(source.has_storageos(), source.storageos(), "storageos", CheckStorageOs);
  one(source.has_csi(), source.csi(), "csi", CheckCsi);
  if (sources == 0) errors.push_back(Required(path, "must specify a volume type"));
}

}  // namespace keelson::k8s
