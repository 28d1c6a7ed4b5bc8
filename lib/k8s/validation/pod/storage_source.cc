// Volume sources that belong to one storage system each.
#include <algorithm>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

struct Needed {
  std::string_view field;
  const std::string& value;
};

void CheckNeeded(std::initializer_list<Needed> fields, const Path& path, FieldErrors& errors) {
  for (const Needed& one : fields) {
    if (one.value.empty()) errors.push_back(Required(path.Child(one.field)));
  }
}

bool IsAlnum(char c) { return isalnum(static_cast<unsigned char>(c)) != 0; }
bool AllAlnum(std::string_view text) { return std::all_of(text.begin(), text.end(), IsAlnum); }

// iqn.2016-04.example.com:name
bool IsIqn(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos || name.size() < 13 || colon < 13) return false;
  const std::string_view date = name.substr(4, 7), authority = name.substr(12, colon - 12);
  for (size_t i = 0; i < date.size(); ++i) {
    if (i == 4 ? date[i] != '-' : !isdigit(static_cast<unsigned char>(date[i]))) return false;
  }
  const auto in_authority = [](char c) { return IsAlnum(c) || c == '-' || c == '.'; };
  const std::string_view rest = name.substr(colon + 1);
  return name[3] == '.' && name[11] == '.' && !authority.empty() && !rest.empty() &&
         std::all_of(authority.begin(), authority.end(), in_authority) &&
         rest.find_first_of(",;*&$| \t\n") == std::string_view::npos;
}

void CheckInitiator(const std::string& name, const Path& path, FieldErrors& errors) {
  const std::string_view text = name, kind = text.substr(0, 3);
  bool valid = false;
  if (kind == "iqn") {
    valid = IsIqn(text);
  } else if (kind == "eui") {
    valid = text.size() == 20 && AllAlnum(text.substr(4));
  } else if (kind == "naa") {
    valid = text.size() == 36 && AllAlnum(text.substr(4));
  } else {
    errors.push_back(Invalid(path, name, "must be valid format starting with iqn, eui, or naa"));
    return;
  }
  if (!valid) errors.push_back(Invalid(path, name, "must be valid format"));
}

void CheckIscsi(const corev1::ISCSIVolumeSource& source, const Path& path, FieldErrors& errors) {
  CheckNeeded({{"targetPortal", source.target_portal()}, {"iqn", source.iqn()}}, path, errors);
  if (!source.iqn().empty()) CheckInitiator(source.iqn(), path.Child("iqn"), errors);
  CheckRange(source.lun(), 0, 255, path.Child("lun"), errors);
  if ((source.chap_auth_discovery() || source.chap_auth_session()) && !source.has_secret_ref()) {
    errors.push_back(Required(path.Child("secretRef")));
  }
  if (source.has_initiator_name()) {
    CheckInitiator(source.initiator_name(), path.Child("initiatorname"), errors);
  }
}

void CheckFc(const corev1::FCVolumeSource& source, const Path& path, FieldErrors& errors) {
  const Path targets = path.Child("targetWWNs");
  if (source.target_wwns().empty() && source.wwids().empty()) {
    errors.push_back(Required(targets, "must specify either targetWWNs or wwids, but not both"));
  }
  if (source.target_wwns().empty()) return;
  if (!source.wwids().empty()) {
    errors.push_back(InvalidRaw(targets, PrintStrings(source.target_wwns()),
                                "targetWWNs and wwids can not be specified simultaneously"));
  }
  if (!source.has_lun()) {
    errors.push_back(Required(path.Child("lun"), "lun is required if targetWWNs is specified"));
  } else {
    CheckRange(source.lun(), 0, 255, path.Child("lun"), errors);
  }
}

// The message has upstream's range; 0 means no partition.
void CheckPartition(int32_t partition, const Path& path, FieldErrors& errors) {
  if (partition >= 0 && partition <= 255) return;
  errors.push_back(Invalid(path, int64_t{partition}, "must be between 1 and 255, inclusive"));
}

void CheckFlocker(const corev1::FlockerVolumeSource& source, const Path& path, FieldErrors& errors) {
  const std::string& name = source.dataset_name();
  if (name.empty() && source.dataset_uuid().empty()) {
    errors.push_back(Required(path, "one of datasetName and datasetUUID is required"));
  }
  if (!name.empty() && !source.dataset_uuid().empty()) {
    errors.push_back(
        Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"));
  }
  if (name.find('/') != std::string::npos) {
    errors.push_back(Invalid(path.Child("datasetName"), name, "must not contain '/'"));
  }
}

// host:port
bool IsHostPort(std::string_view pair) {
  const size_t colon = pair.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = pair.substr(0, colon);
  return host.find(':') == std::string_view::npos || (host.starts_with('[') && host.ends_with(']'));
}

void CheckQuobyte(const corev1::QuobyteVolumeSource& source, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kRegistry = "must be a host:port pair or multiple pairs separated by commas";
  if (source.registry().empty()) {
    errors.push_back(Required(path.Child("registry"), kRegistry));
  } else if (source.tenant().size() >= 65) {
    errors.push_back(
        Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"));
  } else {
    for (std::string_view rest = source.registry();;) {
      const size_t comma = rest.find(',');
      if (!IsHostPort(rest.substr(0, comma))) {
        errors.push_back(Invalid(path.Child("registry"), source.registry(), kRegistry));
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  CheckNeeded({{"volume", source.volume()}}, path, errors);
}

void CheckFlex(const corev1::FlexVolumeSource& source, const Path& path, FieldErrors& errors) {
  CheckNeeded({{"driver", source.driver()}}, path, errors);
  const Path options = path.Child("options");
  for (const auto& [key, value] : source.options()) {
    const std::string domain = "." + Lower(std::string_view(key).substr(0, key.find('/')));
    if (!domain.ends_with(".kubernetes.io") && !domain.ends_with(".k8s.io")) continue;
    errors.push_back(Invalid(options.Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"));
  }
}

void CheckAzureDisk(const corev1::AzureDiskVolumeSource& source, const Path& path, FieldErrors& errors) {
  CheckNeeded({{"diskName", source.disk_name()}, {"diskURI", source.disk_uri()}}, path, errors);
  if (source.has_caching_mode()) {
    CheckEnum(source.caching_mode(), {"None", "ReadOnly", "ReadWrite"}, path.Child("cachingMode"), errors);
  }
  if (!source.has_kind()) return;
  CheckEnum(source.kind(), {"Dedicated", "Managed", "Shared"}, path.Child("kind"), errors);
  const Path uri = path.Child("diskURI");
  if (source.kind() == "Managed" && !source.disk_uri().starts_with("/subscriptions/")) {
    errors.push_back(NotSupported(uri, source.disk_uri(),
                                  {"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/"
                                   "microsoft.compute/disks/{disk-id}"}));
  }
  if (source.kind() != "Managed" && !source.disk_uri().starts_with("https://")) {
    errors.push_back(
        NotSupported(uri, source.disk_uri(),
                     {"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"}));
  }
}

void CheckStorageOs(const corev1::StorageOSVolumeSource& source, const Path& path, FieldErrors& errors) {
  CheckName(source.volume_name(), CheckDns1123Label, path.Child("volumeName"), errors);
  if (!source.volume_namespace().empty()) {
    AddProblems(CheckDns1123Label(source.volume_namespace()), source.volume_namespace(),
                path.Child("volumeNamespace"), errors);
  }
  if (source.has_secret_ref()) {
    CheckNeeded({{"name", source.secret_ref().name()}}, path.Child("secretRef"), errors);
  }
}

}  // namespace

void CheckStorageSource(const corev1::VolumeSource& source, std::string_view volume, const Path& path,
                        FieldErrors& errors) {
  if (source.has_git_repo()) {
    const Path here = path.Child("gitRepo");
    CheckNeeded({{"repository", source.git_repo().repository()}}, here, errors);
    CheckDescendingPath(source.git_repo().directory(), here.Child("directory"), errors);
  } else if (source.has_gce_persistent_disk()) {
    const Path here = path.Child("persistentDisk");  // upstream's name here
    CheckNeeded({{"pdName", source.gce_persistent_disk().pd_name()}}, here, errors);
    CheckPartition(source.gce_persistent_disk().partition(), here.Child("partition"), errors);
  } else if (source.has_aws_elastic_block_store()) {
    const Path here = path.Child("awsElasticBlockStore");
    CheckNeeded({{"volumeID", source.aws_elastic_block_store().volume_id()}}, here, errors);
    CheckPartition(source.aws_elastic_block_store().partition(), here.Child("partition"), errors);
  } else if (source.has_iscsi()) {
    CheckIscsi(source.iscsi(), path.Child("iscsi"), errors);
    if (source.iscsi().has_initiator_name() &&
        volume.size() + 1 + source.iscsi().target_portal().size() > 64) {
      errors.push_back(
          Invalid(path.Child("name"), volume,
                  "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
                  "if iscsi.initiatorName is specified."));
    }
  } else if (source.has_glusterfs()) {
    CheckNeeded({{"endpoints", source.glusterfs().endpoints()}, {"path", source.glusterfs().path()}},
                path.Child("glusterfs"), errors);
  } else if (source.has_flocker()) {
    CheckFlocker(source.flocker(), path.Child("flocker"), errors);
  } else if (source.has_rbd()) {
    const Path here = path.Child("rbd");
    if (source.rbd().monitors().empty()) errors.push_back(Required(here.Child("monitors")));
    CheckNeeded({{"image", source.rbd().image()}}, here, errors);
  } else if (source.has_cinder()) {
    const Path here = path.Child("cinder");
    CheckNeeded({{"volumeID", source.cinder().volume_id()}}, here, errors);
    if (source.cinder().has_secret_ref()) {
      CheckNeeded({{"name", source.cinder().secret_ref().name()}}, here.Child("secretRef"), errors);
    }
  } else if (source.has_cephfs()) {
    if (source.cephfs().monitors().empty()) {
      errors.push_back(Required(path.Child("cephfs").Child("monitors")));
    }
  } else if (source.has_quobyte()) {
    CheckQuobyte(source.quobyte(), path.Child("quobyte"), errors);
  } else if (source.has_fc()) {
    CheckFc(source.fc(), path.Child("fc"), errors);
  } else if (source.has_flex_volume()) {
    CheckFlex(source.flex_volume(), path.Child("flexVolume"), errors);
  } else if (source.has_azure_file()) {
    CheckNeeded(
        {{"secretName", source.azure_file().secret_name()}, {"shareName", source.azure_file().share_name()}},
        path.Child("azureFile"), errors);
  } else if (source.has_vsphere_volume()) {
    CheckNeeded({{"volumePath", source.vsphere_volume().volume_path()}}, path.Child("vsphereVolume"), errors);
  } else if (source.has_photon_persistent_disk()) {
    CheckNeeded({{"pdID", source.photon_persistent_disk().pd_id()}}, path.Child("photonPersistentDisk"),
                errors);
  } else if (source.has_portworx_volume()) {
    CheckNeeded({{"volumeID", source.portworx_volume().volume_id()}}, path.Child("portworxVolume"), errors);
  } else if (source.has_azure_disk()) {
    CheckAzureDisk(source.azure_disk(), path.Child("azureDisk"), errors);
  } else if (source.has_storageos()) {
    CheckStorageOs(source.storageos(), path.Child("storageos"), errors);
  } else if (source.has_scale_io()) {
    CheckNeeded({{"gateway", source.scale_io().gateway()},
                 {"system", source.scale_io().system()},
                 {"volumeName", source.scale_io().volume_name()}},
                path.Child("scaleIO"), errors);
  }
}

}  // namespace keelson::k8s
