// Projected volumes: files from several sources in one directory.
#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/validation/policy/certificate.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kKeyTypes = {"RSA3072",   "RSA4096",   "ECDSAP256",
                                                 "ECDSAP384", "ECDSAP521", "ED25519"};
constexpr int64_t kShortestToken = 600;
constexpr int64_t kLongestToken = int64_t{1} << 32;
constexpr int32_t kShortestCertificate = 3600;
constexpr int32_t kLongestCertificate = 91 * 24 * 3600;
constexpr int32_t kLongestKubernetesCertificate = 24 * 3600;

// Paths of all sources share the directory. `field` is upstream's name for the conflicting one.
class FilePaths {
 public:
  FilePaths(const Path& volume, FieldErrors& errors) : volume_(volume), errors_(errors) {}
  void Add(const std::string& path, const std::string& culprit) {
    if (seen_.insert(path).second) return;
    errors_.push_back(Invalid(volume_, culprit, "conflicting duplicate paths"));
  }

 private:
  const Path& volume_;
  FieldErrors& errors_;
  std::set<std::string> seen_;
};

// For a secret or a config map.
template <typename Source>
void CheckKeys(const Source& source, FilePaths& paths, const Path& path, FieldErrors& errors) {
  const std::string& name = source.local_object_reference().name();
  if (name.empty()) errors.push_back(Required(path.Child("name")));
  const Path items = path.Child("items");
  for (int i = 0; i < source.items_size(); ++i) {
    CheckKeyToPath(source.items(i), items.Index(i), errors);
    if (!source.items(i).path().empty()) paths.Add(source.items(i).path(), name);
  }
}

void CheckDownward(const corev1::DownwardAPIProjection& source, FilePaths& paths, const Path& path,
                   FieldErrors& errors) {
  for (const corev1::DownwardAPIVolumeFile& file : source.items()) {
    CheckDownwardFile(file, path, errors);
    if (!file.path().empty()) paths.Add(file.path(), file.path());
  }
}

// Errors about the file's path are reported at the volume.
void CheckToken(const corev1::ServiceAccountTokenProjection& token, const Path& volume, const Path& path,
                FieldErrors& errors) {
  if (!token.has_expiration_seconds() || token.expiration_seconds() < kShortestToken) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), token.expiration_seconds(),
                             "may not specify a duration less than 10 minutes"));
  }
  if (token.expiration_seconds() > kLongestToken) {
    errors.push_back(Invalid(path.Child("expirationSeconds"), token.expiration_seconds(),
                             "may not specify a duration larger than 2^32 seconds"));
  }
  if (token.path().empty()) {
    errors.push_back(Required(volume.Child("path")));
  } else {
    CheckLocalPath(token.path(), volume.Child("path"), errors);
  }
}

// "example.com/name": a domain of at least two labels, and a path.
void CheckSigner(const std::string& signer, const Path& path, FieldErrors& errors) {
  if (signer.empty()) {
    errors.push_back(Required(path));
    return;
  }
  const size_t slash = signer.find('/');
  if (slash == std::string::npos || signer.find('/', slash + 1) != std::string::npos) {
    errors.push_back(Invalid(path, signer,
                             "must be a fully qualified domain and path of the form "
                             "'example.com/signer-name'"));
    return;
  }
  const std::string_view text = signer;
  const std::string_view domain = text.substr(0, slash), rest = text.substr(slash + 1);
  if (domain.find('.') == std::string_view::npos) {
    errors.push_back(
        Invalid(path, domain, "should be a domain with at least two segments separated by dots"));
  }
  for (const std::string& problem : CheckDns1123Subdomain(domain)) {
    errors.push_back(Invalid(path, domain, fmt::format("validating label {}: {}", Quote(domain), problem)));
  }
  for (const std::string& problem : CheckDns1123Subdomain(rest)) {
    errors.push_back(Invalid(path, signer, fmt::format("validating label {}: {}", Quote(rest), problem)));
  }
}

// "signer.domain:name:suffix" belongs to a signer, a plain name does not.
void CheckBundleName(const std::string& name, const Path& path, FieldErrors& errors) {
  const size_t colon = name.rfind(':');
  const std::string_view text = name;
  const std::string_view plain = colon == std::string::npos ? text : text.substr(colon + 1);
  for (const std::string& problem : CheckDns1123Subdomain(plain)) {
    errors.push_back(Invalid(path, name, fmt::format("not a valid clustertrustbundlename: {}", problem)));
  }
}

void CheckBundle(const corev1::ClusterTrustBundleProjection& source, FilePaths& paths, const Path& path,
                 FieldErrors& errors) {
  if (source.has_name() && source.has_signer_name()) {
    errors.push_back(InvalidObject(path, source, "only one of name and signerName may be used"));
  } else if (source.has_name()) {
    const Path name = path.Child("name");
    if (source.name().empty()) errors.push_back(Required(name, "must be a valid object name"));
    CheckBundleName(source.name(), name, errors);
    if (source.has_label_selector()) {
      errors.push_back(InvalidObject(path.Child("labelSelector"), source.label_selector(),
                                     "labelSelector must be unset if name is specified"));
    }
  } else if (source.has_signer_name()) {
    const Path signer = path.Child("signerName");
    if (source.signer_name().empty()) errors.push_back(Required(signer, "must be a valid signer name"));
    CheckSigner(source.signer_name(), signer, errors);
    CheckLabelSelector(source.label_selector(), path.Child("labelSelector"), errors);
  } else {
    errors.push_back(Required(path, "either name or signerName must be specified"));
  }
  if (source.path().empty()) errors.push_back(Required(path.Child("path")));
  CheckLocalPath(source.path(), path.Child("path"), errors);
  paths.Add(source.path(), source.path());
}

void CheckLifetime(const corev1::PodCertificateProjection& source, const Path& path, FieldErrors& errors) {
  if (!source.has_max_expiration_seconds()) return;
  const int64_t seconds = source.max_expiration_seconds();
  const bool kubernetes = source.signer_name().starts_with("kubernetes.io/");
  const int64_t longest = kubernetes ? kLongestKubernetesCertificate : kLongestCertificate;
  if (seconds < kShortestCertificate) {
    errors.push_back(Invalid(
        path, seconds, fmt::format("if provided, maxExpirationSeconds must be >= {}", kShortestCertificate)));
  }
  if (seconds > longest) {
    errors.push_back(
        Invalid(path, seconds, fmt::format("if provided, maxExpirationSeconds must be <= {}", longest)));
  }
}

void CheckCertificate(const corev1::PodCertificateProjection& source, FilePaths& paths, const Path& path,
                      FieldErrors& errors) {
  CheckSigner(source.signer_name(), path.Child("signerName"), errors);
  CheckUserAnnotations(source.user_annotations(), path.Child("userAnnotations"), errors);
  if (std::find(kKeyTypes.begin(), kKeyTypes.end(), source.key_type()) == kKeyTypes.end()) {
    errors.push_back(NotSupported(path.Child("keyType"), source.key_type(), kKeyTypes));
  }
  CheckLifetime(source, path.Child("maxExpirationSeconds"), errors);
  const std::pair<std::string_view, const std::string*> files[] = {
      {"credentialBundlePath", &source.credential_bundle_path()},
      {"keyPath", &source.key_path()},
      {"certificateChainPath", &source.certificate_chain_path()}};
  bool any = false;
  for (const auto& [field, file] : files) {
    if (file->empty()) continue;
    any = true;
    CheckLocalPath(*file, path.Child(field), errors);
    paths.Add(*file, *file);
  }
  if (any) return;
  errors.push_back(
      Required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"));
}

}  // namespace

void CheckProjected(const corev1::ProjectedVolumeSource& source, const Path& path, FieldErrors& errors) {
  if (source.has_default_mode()) CheckFileMode(source.default_mode(), path.Child("defaultMode"), errors);
  FilePaths paths(path, errors);
  const Path list = path.Child("sources");
  for (int i = 0; i < source.sources_size(); ++i) {
    const corev1::VolumeProjection& one = source.sources(i);
    const Path item = list.Index(i);
    if (one.has_secret()) CheckKeys(one.secret(), paths, item.Child("secret"), errors);
    if (one.has_config_map()) CheckKeys(one.config_map(), paths, item.Child("configMap"), errors);
    if (one.has_downward_api()) CheckDownward(one.downward_api(), paths, item.Child("downwardAPI"), errors);
    if (one.has_service_account_token()) {
      CheckToken(one.service_account_token(), path, item.Child("serviceAccountToken"), errors);
    }
    if (one.has_cluster_trust_bundle()) {
      CheckBundle(one.cluster_trust_bundle(), paths, item.Child("clusterTrustBundle"), errors);
    }
    if (one.has_pod_certificate()) {
      CheckCertificate(one.pod_certificate(), paths, item.Child("podCertificate"), errors);
    }
    const int count = int{one.has_secret()} + int{one.has_config_map()} + int{one.has_downward_api()} +
                      int{one.has_service_account_token()} + int{one.has_cluster_trust_bundle()} +
                      int{one.has_pod_certificate()};
    if (count > 1) errors.push_back(Forbidden(item, "may not specify more than 1 volume type per source"));
  }
}

}  // namespace keelson::k8s
