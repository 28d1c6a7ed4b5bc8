// ServiceAccount: sets the pod's ServiceAccount, and mounts its token, the cluster's CA and the namespace at
// /var/run/secrets/kubernetes.io/serviceaccount from a projected volume.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr const char* kVolumePrefix = "kube-api-access-";
// The expiration of default token volumes; upstream recognizes them by this odd number.
constexpr int64_t kTokenSeconds = 3607;
constexpr char kEnforceMountable[] = "kubernetes.io/enforce-mountable-secrets";
constexpr int32_t kMode = 0644;

template <typename Containers>
bool AllMounted(const Containers& containers) {
  for (const corev1::Container& container : containers) {
    bool mounted = false;
    for (const corev1::VolumeMount& mount : container.volume_mounts()) {
      mounted |= mount.mount_path() == kMountPath;
    }
    if (!mounted) return false;
  }
  return true;
}

template <typename Containers>
void Mount(Containers& containers, const std::string& volume) {
  for (corev1::Container& container : containers) {
    bool mounted = false;
    for (const corev1::VolumeMount& mount : container.volume_mounts()) {
      mounted |= mount.mount_path() == kMountPath;
    }
    if (mounted) continue;
    corev1::VolumeMount& mount = *container.add_volume_mounts();
    mount.set_name(volume);
    mount.set_read_only(true);
    mount.set_mount_path(kMountPath);
  }
}

void AddTokenVolume(corev1::PodSpec& spec, const std::string& name) {
  corev1::Volume& volume = *spec.add_volumes();
  volume.set_name(name);
  corev1::ProjectedVolumeSource& projected = *volume.mutable_volume_source()->mutable_projected();
  projected.set_default_mode(kMode);
  corev1::ServiceAccountTokenProjection& token = *projected.add_sources()->mutable_service_account_token();
  token.set_path("token");
  token.set_expiration_seconds(kTokenSeconds);
  corev1::ConfigMapProjection& ca = *projected.add_sources()->mutable_config_map();
  ca.mutable_local_object_reference()->set_name("kube-root-ca.crt");
  corev1::KeyToPath& file = *ca.add_items();
  file.set_key("ca.crt");
  file.set_path("ca.crt");
  corev1::DownwardAPIVolumeFile& ns = *projected.add_sources()->mutable_downward_api()->add_items();
  ns.set_path("namespace");
  ns.mutable_field_ref()->set_api_version("v1");
  ns.mutable_field_ref()->set_field_path("metadata.namespace");
}

// The first secret of a container that `mountable` does not have; `what`: the container kind.
template <typename Container>
std::string ForeignSecretOf(const Container& container, std::string_view what,
                            const std::set<std::string>& mountable, const std::string& account) {
  const std::string tail =
      fmt::format("is not allowed because service account {} does not reference that secret", account);
  for (const corev1::EnvVar& variable : container.env()) {
    if (!variable.value_from().has_secret_key_ref()) continue;
    const std::string& secret = variable.value_from().secret_key_ref().local_object_reference().name();
    if (mountable.count(secret)) continue;
    return fmt::format("{} {} with envVar {} referencing secret.secretName=\"{}\" {}", what, container.name(),
                       variable.name(), secret, tail);
  }
  for (const corev1::EnvFromSource& source : container.env_from()) {
    const std::string& secret = source.secret_ref().local_object_reference().name();
    if (!source.has_secret_ref() || mountable.count(secret)) continue;
    return fmt::format("{} {} with envFrom referencing secret.secretName=\"{}\" {}", what, container.name(),
                       secret, tail);
  }
  return "";
}

// Secrets that the pod refers to must be in its ServiceAccount's list (enforce-mountable-secrets). For
// updates only ephemeral containers can have changed.
std::string FirstForeignSecret(const corev1::PodSpec& spec, const corev1::ServiceAccount& account,
                               bool created) {
  std::set<std::string> mountable;
  for (const corev1::ObjectReference& secret : account.secrets()) mountable.insert(secret.name());
  const std::string& name = account.metadata().name();
  std::string problem;
  for (const auto& container : spec.ephemeral_containers()) {
    problem = ForeignSecretOf(container.ephemeral_container_common(), "ephemeral container", mountable, name);
    if (!problem.empty()) return problem;
  }
  if (!created) return "";
  for (const corev1::Volume& volume : spec.volumes()) {
    const auto& source = volume.volume_source();
    if (!source.has_secret() || mountable.count(source.secret().secret_name())) continue;
    return fmt::format(
        "volume with secret.secretName=\"{}\" is not allowed because service account {} does not "
        "reference that secret",
        source.secret().secret_name(), name);
  }
  for (const corev1::Container& container : spec.init_containers()) {
    problem = ForeignSecretOf(container, "init container", mountable, name);
    if (!problem.empty()) return problem;
  }
  for (const corev1::Container& container : spec.containers()) {
    problem = ForeignSecretOf(container, "container", mountable, name);
    if (!problem.empty()) return problem;
  }
  for (int i = 0; i < spec.image_pull_secrets_size(); ++i) {
    const std::string& secret = spec.image_pull_secrets(i).name();
    const auto& own = account.image_pull_secrets();
    if (std::any_of(own.begin(), own.end(), [&](const auto& one) { return one.name() == secret; })) continue;
    return fmt::format(
        "imagePullSecrets[{}].name=\"{}\" is not allowed because service account {} does not "
        "reference that imagePullSecret",
        i, secret, name);
  }
  return "";
}

class ServiceAccountAdmission : public AdmissionPlugin {
 public:
  explicit ServiceAccountAdmission(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "ServiceAccount"; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (request.operation != registry::Operation::kCreate || !request.Is("", "pods")) return {};
    auto& pod = static_cast<corev1::Pod&>(*request.object);
    // Mirror pods have no ServiceAccount: they reflect running static pods.
    if (k8s::IsMirror(pod)) return {};
    corev1::PodSpec& spec = *pod.mutable_spec();
    if (spec.service_account_name().empty()) spec.set_service_account_name("default");
    spec.set_service_account(spec.service_account_name());
    const api::ResourceInfo& accounts = api::ResourceOf<corev1::ServiceAccount>();
    std::string key = api::KeyOf(request.ns, spec.service_account_name());
    storage::ObjectPtr found = store_.Peek(accounts, key);
    if (!found) {
      KEELSON_ASSIGN_OR_RETURN(
          found, store_.Get(accounts, key, "", {SteadyTime::clock::now() + std::chrono::seconds(10), {}}));
    }
    if (!found) {
      return NotAdmitted(
          request, fmt::format("error looking up service account {}: serviceaccount \"{}\" not found", key,
                               spec.service_account_name()));
    }
    auto account = std::static_pointer_cast<const corev1::ServiceAccount>(found->Decode());
    if (spec.image_pull_secrets().empty()) *spec.mutable_image_pull_secrets() = account->image_pull_secrets();
    bool mount = spec.has_automount_service_account_token()       ? spec.automount_service_account_token()
                 : account->has_automount_service_account_token() ? account->automount_service_account_token()
                                                                  : true;
    if (mount) MountToken(spec);
    return {};
  }

  Result<> Validate(const AdmissionRequest& request) override {
    const bool created = request.Creates() && request.Is("", "pods");
    if (!created && !(request.Updates() && request.Is("", "pods/ephemeralcontainers"))) return {};
    const auto& pod = request.Object<corev1::Pod>();
    if (created && k8s::IsMirror(pod)) return CheckMirror(request, pod.spec());
    if (pod.spec().service_account_name().empty()) return {};
    storage::ObjectPtr found = store_.Peek(api::ResourceOf<corev1::ServiceAccount>(),
                                           api::KeyOf(request.ns, pod.spec().service_account_name()));
    if (!found) return {};  // too new for the cache; it was read consistently before
    auto account = std::static_pointer_cast<const corev1::ServiceAccount>(found->Decode());
    auto enforces = account->metadata().annotations().find(kEnforceMountable);
    if (enforces == account->metadata().annotations().end() || enforces->second != "true") return {};
    const std::string problem = FirstForeignSecret(pod.spec(), *account, created);
    return problem.empty() ? Result<>() : NotAdmitted(request, problem);
  }

 private:
  static Result<> CheckMirror(const AdmissionRequest& request, const corev1::PodSpec& spec) {
    if (!spec.service_account_name().empty()) {
      return NotAdmitted(request, "a mirror pod may not reference service accounts");
    }
    if (!k8s::ReferencedSecrets(spec).empty()) {
      return NotAdmitted(request, "a mirror pod may not reference secrets");
    }
    for (const corev1::Volume& volume : spec.volumes()) {
      for (const auto& source : volume.volume_source().projected().sources()) {
        if (source.has_service_account_token()) {
          return NotAdmitted(request, "a mirror pod may not use ServiceAccountToken volume projections");
        }
      }
    }
    return {};
  }

  static void MountToken(corev1::PodSpec& spec) {
    if (AllMounted(spec.containers()) && AllMounted(spec.init_containers())) return;
    std::string volume;
    for (const corev1::Volume& one : spec.volumes()) {
      if (one.name().rfind(kVolumePrefix, 0) == 0 && one.volume_source().has_projected()) volume = one.name();
    }
    if (volume.empty()) {
      volume = kVolumePrefix + api::RandomSuffix();
      AddTokenVolume(spec, volume);
    }
    Mount(*spec.mutable_containers(), volume);
    Mount(*spec.mutable_init_containers(), volume);
  }

  storage::Store& store_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewServiceAccountAdmission(storage::Store& store) {
  return std::make_unique<ServiceAccountAdmission>(store);
}

}  // namespace keelson::apiserver
