// Volumes of a pod.
#include <set>

#include <fmt/format.h>

#include "lib/k8s/validate_internal.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kVolumeFields = {"metadata.annotations", "metadata.labels",
                                                     "metadata.name", "metadata.namespace", "metadata.uid"};
const std::vector<std::string_view> kHostPathTypes = {
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"};
constexpr int64_t kShortestToken = 600;

void CheckMode(int32_t mode, const Path& path, FieldErrors& errors) {
  if (mode < 0 || mode > 0777) {
    errors.push_back(
        Invalid(path, int64_t{mode}, "must be a number between 0 and 0777 (octal), both inclusive"));
  }
}

// A path inside a volume that a user chooses: relative, and not "..data".
void CheckFilePath(std::string_view value, const Path& path, FieldErrors& errors) {
  CheckDescendingPath(value, path, errors);
  if (value.starts_with("..") && !value.starts_with("../")) {
    errors.push_back(Invalid(path, value, "must not start with '..'"));
  }
}

void CheckItems(const google::protobuf::RepeatedPtrField<corev1::KeyToPath>& items, const Path& path,
                FieldErrors& errors) {
  for (int i = 0; i < items.size(); ++i) {
    const Path item = path.Index(i);
    if (items[i].key().empty()) errors.push_back(Required(item.Child("key")));
    if (items[i].path().empty()) errors.push_back(Required(item.Child("path")));
    CheckFilePath(items[i].path(), item.Child("path"), errors);
    if (items[i].has_mode()) CheckMode(items[i].mode(), item.Child("mode"), errors);
  }
}

void CheckDownwardItems(const google::protobuf::RepeatedPtrField<corev1::DownwardAPIVolumeFile>& items,
                        const Path& path, FieldErrors& errors) {
  for (int i = 0; i < items.size(); ++i) {
    const corev1::DownwardAPIVolumeFile& file = items[i];
    const Path item = path.Index(i);
    if (file.path().empty()) errors.push_back(Required(item.Child("path")));
    CheckFilePath(file.path(), item.Child("path"), errors);
    if (file.has_field_ref()) {
      CheckObjectField(file.field_ref(), kVolumeFields, item.Child("fieldRef"), errors);
      if (file.has_resource_field_ref()) {
        errors.push_back(
            Invalid(item, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
      }
    } else if (file.has_resource_field_ref()) {
      CheckResourceField(file.resource_field_ref(), true, item.Child("resourceFieldRef"), errors);
    } else {
      errors.push_back(Required(item, "one of fieldRef and resourceFieldRef is required"));
    }
    if (file.has_mode()) CheckMode(file.mode(), item.Child("mode"), errors);
  }
}

void CheckToken(const corev1::ServiceAccountTokenProjection& token, const Path& path, FieldErrors& errors) {
  if (token.expiration_seconds() < kShortestToken) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), token.expiration_seconds(),
                             "may not specify a duration less than 10 minutes"));
  }
  if (token.expiration_seconds() > int64_t{1} << 32) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), token.expiration_seconds(),
                             "may not specify a duration larger than 2^32 seconds"));
  }
  if (token.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckFilePath(token.path(), path.Child("path"), errors);
}

void CheckProjection(const corev1::VolumeProjection& source, const Path& path, FieldErrors& errors) {
  int count = 0;
  const auto first = [&](std::string_view field) {
    if (count++ == 0) return true;
    errors.push_back(Forbidden(path.Child(field), "may not specify more than 1 volume type per source"));
    return false;
  };
  if (source.has_secret() && first("secret")) {
    const Path here = path.Child("secret");
    if (source.secret().local_object_reference().name().empty())
      errors.push_back(Required(here.Child("name")));
    CheckItems(source.secret().items(), here.Child("items"), errors);
  }
  if (source.has_config_map() && first("configMap")) {
    const Path here = path.Child("configMap");
    if (source.config_map().local_object_reference().name().empty()) {
      errors.push_back(Required(here.Child("name")));
    }
    CheckItems(source.config_map().items(), here.Child("items"), errors);
  }
  if (source.has_downward_api() && first("downwardAPI")) {
    const Path here = path.Child("downwardAPI");
    CheckDownwardItems(source.downward_api().items(), here.Child("items"), errors);
  }
  if (source.has_service_account_token() && first("serviceAccountToken")) {
    CheckToken(source.service_account_token(), path.Child("serviceAccountToken"), errors);
  }
  if (source.has_cluster_trust_bundle() && first("clusterTrustBundle")) {
    const Path here = path.Child("clusterTrustBundle");
    if (source.cluster_trust_bundle().path().empty()) errors.push_back(Required(here.Child("path")));
  }
  if (count == 0 && !source.has_pod_certificate()) {
    errors.push_back(Required(path, "must specify a volume type"));
  }
}

void CheckHostPath(const corev1::HostPathVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.path().empty()) {
    errors.push_back(Required(path.Child("path")));
    return;
  }
  const std::string padded = source.path() + "/";
  if (padded.find("/../") != std::string::npos || padded.starts_with("../")) {
    errors.push_back(Invalid(path.Child("path"), source.path(), "must not contain '..'"));
  }
  if (!source.type().empty()) CheckEnum(source.type(), kHostPathTypes, path.Child("type"), errors);
}

// Sources whose content is files that the kubelet writes.
void CheckFileSource(const corev1::VolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.has_secret()) {
    const Path here = path.Child("secret");
    if (source.secret().secret_name().empty()) errors.push_back(Required(here.Child("secretName")));
    if (source.secret().has_default_mode()) {
      CheckMode(source.secret().default_mode(), here.Child("defaultMode"), errors);
    }
    CheckItems(source.secret().items(), here.Child("items"), errors);
  }
  if (source.has_config_map()) {
    const Path here = path.Child("configMap");
    if (source.config_map().local_object_reference().name().empty()) {
      errors.push_back(Required(here.Child("name")));
    }
    if (source.config_map().has_default_mode()) {
      CheckMode(source.config_map().default_mode(), here.Child("defaultMode"), errors);
    }
    CheckItems(source.config_map().items(), here.Child("items"), errors);
  }
  if (source.has_downward_api()) {
    const Path here = path.Child("downwardAPI");
    if (source.downward_api().has_default_mode()) {
      CheckMode(source.downward_api().default_mode(), here.Child("defaultMode"), errors);
    }
    CheckDownwardItems(source.downward_api().items(), here.Child("items"), errors);
  }
  if (source.has_projected()) {
    const Path here = path.Child("projected");
    const Path sources = here.Child("sources");
    if (source.projected().has_default_mode()) {
      CheckMode(source.projected().default_mode(), here.Child("defaultMode"), errors);
    }
    for (int i = 0; i < source.projected().sources_size(); ++i) {
      CheckProjection(source.projected().sources(i), sources.Index(i), errors);
    }
  }
}

void CheckSource(const corev1::VolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.has_empty_dir() && source.empty_dir().has_size_limit()) {
    const Path here = path.Child("emptyDir");
    if (api::Amount::Of(source.empty_dir().size_limit()) < api::Amount()) {
      errors.push_back(
          Forbidden(here.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity"));
    }
  }
  if (source.has_host_path()) CheckHostPath(source.host_path(), path.Child("hostPath"), errors);
  CheckFileSource(source, path, errors);
  if (source.has_persistent_volume_claim()) {
    const Path here = path.Child("persistentVolumeClaim");
    if (source.persistent_volume_claim().claim_name().empty())
      errors.push_back(Required(here.Child("claimName")));
  }
  if (source.has_nfs()) {
    const Path here = path.Child("nfs");
    if (source.nfs().server().empty()) errors.push_back(Required(here.Child("server")));
    if (source.nfs().path().empty()) errors.push_back(Required(here.Child("path")));
    if (!source.nfs().path().starts_with("/")) {
      errors.push_back(Invalid(here.Child("path"), source.nfs().path(), "must be an absolute path"));
    }
  }
  if (source.has_csi()) {
    const Path here = path.Child("csi");
    if (source.csi().driver().empty()) errors.push_back(Required(here.Child("driver")));
  }
  if (source.has_ephemeral()) {
    const Path here = path.Child("ephemeral");
    const Path claim = here.Child("volumeClaimTemplate");
    if (!source.ephemeral().has_volume_claim_template()) {
      errors.push_back(Required(claim));
    } else {
      CheckClaimSpec(source.ephemeral().volume_claim_template().spec(), claim.Child("spec"), errors);
    }
  }
  if (source.has_image()) {
    const Path here = path.Child("image");
    if (source.image().reference().empty()) errors.push_back(Required(here.Child("reference")));
    CheckEnum(source.image().pull_policy(), {"Always", "IfNotPresent", "Never"}, here.Child("pullPolicy"),
              errors);
  }
}

// Exactly one of the sources; each further one is named.
void CheckOneSource(const corev1::VolumeSource& source, const Path& path, FieldErrors& errors) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  source.GetReflection()->ListFields(source, &fields);
  if (fields.empty()) errors.push_back(Required(path, "must specify a volume type"));
  for (size_t i = 1; i < fields.size(); ++i) {
    errors.push_back(
        Forbidden(path.Child(fields[i]->json_name()), "may not specify more than 1 volume type"));
  }
}

}  // namespace

void CheckVolumes(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> names;
  for (int i = 0; i < spec.volumes_size(); ++i) {
    const corev1::Volume& volume = spec.volumes(i);
    const Path item = path.Index(i);
    CheckOneSource(volume.volume_source(), item, errors);
    CheckSource(volume.volume_source(), item, errors);
    CheckName(volume.name(), CheckDns1123Label, item.Child("name"), errors);
    if (!volume.name().empty() && !names.insert(volume.name()).second) {
      errors.push_back(Duplicate(item.Child("name"), volume.name()));
    }
  }
}

}  // namespace keelson::k8s
