// Volumes of a pod.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/validation/template.h"

namespace keelson::k8s {

namespace {

using google::protobuf::FieldDescriptor;

const std::vector<std::string_view> kVolumeFields = {"metadata.annotations", "metadata.labels",
                                                     "metadata.name", "metadata.namespace", "metadata.uid"};
const std::vector<std::string_view> kHostPathTypes = {
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"};
constexpr size_t kDriverBytes = 63;

void CheckHostPath(const corev1::HostPathVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.path().empty()) {
    errors.push_back(Required(path.Child("path")));
    return;
  }
  CheckNoBacksteps(source.path(), path.Child("path"), errors);
  if (!source.type().empty()) CheckEnum(source.type(), kHostPathTypes, path.Child("type"), errors);
}

void CheckItems(const google::protobuf::RepeatedPtrField<corev1::KeyToPath>& items, const Path& path,
                FieldErrors& errors) {
  for (int i = 0; i < items.size(); ++i) CheckKeyToPath(items[i], path.Index(i), errors);
}

void CheckSecret(const corev1::SecretVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.secret_name().empty()) errors.push_back(Required(path.Child("secretName")));
  if (source.has_default_mode()) CheckFileMode(source.default_mode(), path.Child("defaultMode"), errors);
  CheckItems(source.items(), path.Child("items"), errors);
}

void CheckConfigMap(const corev1::ConfigMapVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.local_object_reference().name().empty()) errors.push_back(Required(path.Child("name")));
  if (source.has_default_mode()) CheckFileMode(source.default_mode(), path.Child("defaultMode"), errors);
  CheckItems(source.items(), path.Child("items"), errors);
}

// Errors of a file name the volume, without the file's index.
void CheckDownwardApi(const corev1::DownwardAPIVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.has_default_mode()) CheckFileMode(source.default_mode(), path.Child("defaultMode"), errors);
  for (const corev1::DownwardAPIVolumeFile& file : source.items()) CheckDownwardFile(file, path, errors);
}

void CheckNfs(const corev1::NFSVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.server().empty()) errors.push_back(Required(path.Child("server")));
  if (source.path().empty()) errors.push_back(Required(path.Child("path")));
  if (!source.path().starts_with("/")) {
    errors.push_back(Invalid(path.Child("path"), source.path(), "must be an absolute path"));
  }
}

void CheckCsi(const corev1::CSIVolumeSource& source, const Path& path, FieldErrors& errors) {
  const Path driver = path.Child("driver");
  std::string lower = source.driver();
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (lower.empty()) errors.push_back(Required(driver));
  if (lower.size() > kDriverBytes) errors.push_back(TooLong(driver, kDriverBytes));
  AddProblems(CheckDns1123Subdomain(lower), source.driver(), driver, errors);
  if (!source.has_node_publish_secret_ref()) return;
  const std::string& secret = source.node_publish_secret_ref().name();
  if (secret.empty()) {
    errors.push_back(Required(path.Child("nodePublishSecretRef").Child("name")));
  } else {
    AddProblems(CheckDns1123Subdomain(secret), secret, path.Child("name"), errors);
  }
}

void CheckClaimTemplate(const corev1::PersistentVolumeClaimTemplate& claim, const Path& path,
                        FieldErrors& errors) {
  CheckTemplateMeta(claim.metadata(), path.Child("metadata"), errors);
  CheckClaimSpec(claim.spec(), path.Child("spec"), errors);
}

void CheckEphemeral(const corev1::Volume& volume, const metav1::ObjectMeta* pod, const Path& path,
                    FieldErrors& errors) {
  const corev1::EphemeralVolumeSource& source = volume.volume_source().ephemeral();
  const Path ephemeral = path.Child("ephemeral");
  if (!source.has_volume_claim_template()) {
    errors.push_back(Required(ephemeral.Child("volumeClaimTemplate")));
  } else {
    CheckClaimTemplate(source.volume_claim_template(), ephemeral.Child("volumeClaimTemplate"), errors);
  }
  if (!pod || pod->name().empty() || volume.name().empty()) return;
  const std::string name = pod->name() + "-" + volume.name();
  for (const std::string& problem : CheckDns1123Subdomain(name)) {
    errors.push_back(
        Invalid(path.Child("name"), volume.name(), fmt::format("PVC name {}: {}", Quote(name), problem)));
  }
}

// A template may leave the image out: the controller that makes the pods may fill it in.
void CheckImage(const corev1::ImageVolumeSource& source, bool is_pod, const Path& path, FieldErrors& errors) {
  if (is_pod && source.reference().empty()) errors.push_back(Required(path.Child("reference")));
  CheckPullPolicy(source.pull_policy(), path.Child("pullPolicy"), errors);
}

// The priority of a source: the first one is checked, any other is refused.
int Rank(const FieldDescriptor* field) {
  using Source = corev1::VolumeSource;
  static const int kOrder[] = {Source::kEmptyDirFieldNumber,
                               Source::kHostPathFieldNumber,
                               Source::kGitRepoFieldNumber,
                               Source::kGcePersistentDiskFieldNumber,
                               Source::kAwsElasticBlockStoreFieldNumber,
                               Source::kSecretFieldNumber,
                               Source::kNfsFieldNumber,
                               Source::kIscsiFieldNumber,
                               Source::kGlusterfsFieldNumber,
                               Source::kFlockerFieldNumber,
                               Source::kPersistentVolumeClaimFieldNumber,
                               Source::kRbdFieldNumber,
                               Source::kCinderFieldNumber,
                               Source::kCephfsFieldNumber,
                               Source::kQuobyteFieldNumber,
                               Source::kDownwardApiFieldNumber,
                               Source::kFcFieldNumber,
                               Source::kFlexVolumeFieldNumber,
                               Source::kConfigMapFieldNumber,
                               Source::kAzureFileFieldNumber,
                               Source::kVsphereVolumeFieldNumber,
                               Source::kPhotonPersistentDiskFieldNumber,
                               Source::kPortworxVolumeFieldNumber,
                               Source::kAzureDiskFieldNumber,
                               Source::kStorageosFieldNumber,
                               Source::kProjectedFieldNumber,
                               Source::kScaleIoFieldNumber,
                               Source::kCsiFieldNumber,
                               Source::kEphemeralFieldNumber,
                               Source::kImageFieldNumber};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), field->number()) - kOrder);
}

void CheckSource(const corev1::Volume& volume, const PodScope& scope, const Path& path, FieldErrors& errors) {
  const corev1::VolumeSource& source = volume.volume_source();
  std::vector<const FieldDescriptor*> fields;
  source.GetReflection()->ListFields(source, &fields);
  if (fields.empty()) {
    errors.push_back(Required(path, "must specify a volume type"));
    return;
  }
  std::sort(fields.begin(), fields.end(), [](auto* a, auto* b) { return Rank(a) < Rank(b); });
  for (size_t i = 1; i < fields.size(); ++i) {
    errors.push_back(
        Forbidden(path.Child(fields[i]->json_name()), "may not specify more than 1 volume type"));
  }
  switch (fields[0]->number()) {
    case corev1::VolumeSource::kEmptyDirFieldNumber:
      if (api::Amount::Of(source.empty_dir().size_limit()) < api::Amount()) {
        errors.push_back(Forbidden(path.Child("emptyDir").Child("sizeLimit"),
                                   "SizeLimit field must be a valid resource quantity"));
      }
      return;
    case corev1::VolumeSource::kHostPathFieldNumber:
      return CheckHostPath(source.host_path(), path.Child("hostPath"), errors);
    case corev1::VolumeSource::kSecretFieldNumber:
      return CheckSecret(source.secret(), path.Child("secret"), errors);
    case corev1::VolumeSource::kConfigMapFieldNumber:
      return CheckConfigMap(source.config_map(), path.Child("configMap"), errors);
    case corev1::VolumeSource::kDownwardApiFieldNumber:
      return CheckDownwardApi(source.downward_api(), path.Child("downwardAPI"), errors);
    case corev1::VolumeSource::kProjectedFieldNumber:
      return CheckProjected(source.projected(), path.Child("projected"), errors);
    case corev1::VolumeSource::kPersistentVolumeClaimFieldNumber:
      if (source.persistent_volume_claim().claim_name().empty()) {
        errors.push_back(Required(path.Child("persistentVolumeClaim").Child("claimName")));
      }
      return;
    case corev1::VolumeSource::kNfsFieldNumber:
      return CheckNfs(source.nfs(), path.Child("nfs"), errors);
    case corev1::VolumeSource::kCsiFieldNumber:
      return CheckCsi(source.csi(), path.Child("csi"), errors);
    case corev1::VolumeSource::kEphemeralFieldNumber:
      return CheckEphemeral(volume, scope.meta, path, errors);
    case corev1::VolumeSource::kImageFieldNumber:
      return CheckImage(source.image(), scope.is_pod(), path.Child("image"), errors);
    default:
      return CheckStorageSource(source, volume.name(), path, errors);
  }
}

}  // namespace

void CheckFileMode(int32_t mode, const Path& path, FieldErrors& errors) {
  if (mode >= 0 && mode <= 0777) return;
  errors.push_back(
      Invalid(path, int64_t{mode}, "must be a number between 0 and 0777 (octal), both inclusive"));
}

void CheckNoBacksteps(std::string_view value, const Path& path, FieldErrors& errors) {
  for (std::string_view rest = value;;) {
    const size_t slash = rest.find('/');
    if (rest.substr(0, slash) == "..") {
      errors.push_back(Invalid(path, value, "must not contain '..'"));
      return;
    }
    if (slash == std::string_view::npos) return;
    rest.remove_prefix(slash + 1);
  }
}

void CheckLocalPath(std::string_view value, const Path& path, FieldErrors& errors) {
  CheckDescendingPath(value, path, errors);
  // "../x" has been reported above; ".." alone gets both errors.
  if (value.starts_with("..") && !value.starts_with("../")) {
    errors.push_back(Invalid(path, value, "must not start with '..'"));
  }
}

void CheckKeyToPath(const corev1::KeyToPath& item, const Path& path, FieldErrors& errors) {
  if (item.key().empty()) errors.push_back(Required(path.Child("key")));
  if (item.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckLocalPath(item.path(), path.Child("path"), errors);
  if (item.has_mode()) CheckFileMode(item.mode(), path.Child("mode"), errors);
}

void CheckDownwardFile(const corev1::DownwardAPIVolumeFile& file, const Path& path, FieldErrors& errors) {
  if (file.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckLocalPath(file.path(), path.Child("path"), errors);
  if (file.has_field_ref()) {
    CheckObjectField(file.field_ref(), kVolumeFields, path.Child("fieldRef"), errors);
    if (file.has_resource_field_ref()) {
      errors.push_back(
          Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"));
    }
  } else if (file.has_resource_field_ref()) {
    CheckResourceField(file.resource_field_ref(), true, path.Child("resourceFieldRef"), errors);
  } else {
    errors.push_back(Required(path, "one of fieldRef and resourceFieldRef is required"));
  }
  if (file.has_mode()) CheckFileMode(file.mode(), path.Child("mode"), errors);
}

void CheckVolumes(PodScope& scope, const Path& path, FieldErrors& errors) {
  std::set<std::string> created;  // names of claims that the pod will own
  if (scope.meta && !scope.meta->name().empty()) {
    for (const corev1::Volume& volume : scope.spec.volumes()) {
      if (volume.volume_source().has_ephemeral()) created.insert(scope.meta->name() + "-" + volume.name());
    }
  }
  for (int i = 0; i < scope.spec.volumes_size(); ++i) {
    const corev1::Volume& volume = scope.spec.volumes(i);
    const Path item = path.Index(i);
    const size_t before = errors.size();
    CheckSource(volume, scope, item, errors);
    CheckName(volume.name(), CheckDns1123Label, item.Child("name"), errors);
    if (scope.volumes.contains(volume.name())) errors.push_back(Duplicate(item.Child("name"), volume.name()));
    if (errors.size() == before) scope.volumes.emplace(volume.name(), &volume.volume_source());
    const std::string& claim = volume.volume_source().persistent_volume_claim().claim_name();
    if (created.empty() || !created.contains(claim)) continue;
    errors.push_back(Invalid(item.Child("persistentVolumeClaim").Child("claimName"), claim,
                             "must not reference a PVC that gets created for an ephemeral volume"));
  }
}

}  // namespace keelson::k8s
