#include <sys/stat.h>

#include "kubelet/container/field_value.h"
#include "kubelet/container/security.h"
#include "kubelet/volume/atomic_writer.h"
#include "kubelet/volume/plugin.h"
#include "kubelet/volume/selected_keys.h"
#include "kubelet/volume/token_cache.h"
#include "kubelet/volume/trust_anchors.h"
#include "lib/api/meta.h"
#include "lib/base/file.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

constexpr mode_t kDefaultMode = 0644;
constexpr int64_t kDefaultTokenSeconds = 3600;

// The user that all containers run as, if it is one and the same.
std::optional<uid_t> FsUser(const corev1::Pod& pod) {
  std::optional<int64_t> user;
  bool same = true;
  k8s::ForEachContainer(pod.spec(), [&](const corev1::Container& container) {
    auto own = EffectiveUser(pod.spec(), container);
    if (!own || (user && *user != *own)) same = false;
    user = own;
  });
  if (!same || !user) return std::nullopt;
  return static_cast<uid_t>(*user);
}

class PayloadPlugin : public VolumePlugin {
 public:
  PayloadPlugin(Mounter& mounter, ObjectSource& objects, Clock& clock)
      : mounter_(mounter), objects_(objects), clock_(clock), tokens_(objects, clock) {}

  std::string name() const override { return "kubernetes.io/projected"; }
  bool Supports(const VolumeInput& input) const override {
    const auto& source = input.volume.volume_source();
    return source.has_config_map() || source.has_secret() || source.has_downward_api() ||
           source.has_projected();
  }
  bool ReadOnly() const override { return true; }
  void ForgetPod(const std::string& uid) override {
    tokens_.ForgetPod(uid);
    objects_.ForgetPod(uid);
  }

  Result<std::string> SetUp(const VolumeInput& input, std::stop_token) override {
    std::string path =
        input.node.paths.Volume(input.pod.metadata().uid(), Kind(input.volume), input.volume.name());
    Payload payload;
    if (auto collected = Collect(input, payload); !collected) {
      // While the API server is away the pod keeps what it has.
      if (MayPass(collected.error()) && PathExists(path + "/..data")) return path;
      return collected.error();
    }
    KEELSON_RETURN_IF_ERROR(MakeDirs(path));
    // What may be secret is never written to a disk.
    const bool in_memory = !input.volume.volume_source().has_config_map();
    if (in_memory) {
      KEELSON_ASSIGN_OR_RETURN(bool mounted, mounter_.IsMountPoint(path));
      if (!mounted) KEELSON_RETURN_IF_ERROR(mounter_.MountTmpfs(path, ""));
    }
    auto group = FsGroup(input.pod);
    if (group && ::chown(path.c_str(), -1, *group) != 0) return ErrnoError("chown " + path);
    const mode_t mode = (in_memory ? kMemoryMode : kDiskMode) | (group ? S_ISGID : 0);
    if (::chmod(path.c_str(), mode) != 0) return ErrnoError("chmod " + path);
    KEELSON_RETURN_IF_ERROR(WritePayload(path, payload, group, clock_));
    return path;
  }

 private:
  static bool MayPass(const Error& error) {
    return error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) || error.Is(Code::kTooManyRequests) ||
           error.Is(Code::kInternal);
  }

  static const char* Kind(const corev1::Volume& volume) {
    const auto& source = volume.volume_source();
    if (source.has_config_map()) return "kubernetes.io/configmap";
    if (source.has_secret()) return "kubernetes.io/secret";
    return source.has_downward_api() ? "kubernetes.io/downward-api" : "kubernetes.io/projected";
  }

  Result<> Collect(const VolumeInput& input, Payload& out) {
    const corev1::VolumeSource& source = input.volume.volume_source();
    if (source.has_config_map()) {
      const auto& map = source.config_map();
      return ConfigMapInto(input, map.local_object_reference().name(), map.items(), map.optional(),
                           ModeOf(map.has_default_mode(), map.default_mode(), kDefaultMode), out);
    }
    if (source.has_secret()) {
      const auto& secret = source.secret();
      return SecretInto(input, secret.secret_name(), secret.items(), secret.optional(),
                        ModeOf(secret.has_default_mode(), secret.default_mode(), kDefaultMode), out);
    }
    if (source.has_downward_api()) {
      const auto& fields = source.downward_api();
      return FieldsInto(input, fields.items(),
                        ModeOf(fields.has_default_mode(), fields.default_mode(), kDefaultMode), out);
    }
    const auto& projected = source.projected();
    mode_t mode = ModeOf(projected.has_default_mode(), projected.default_mode(), kDefaultMode);
    for (int index = 0; index < projected.sources_size(); ++index) {
      KEELSON_RETURN_IF_ERROR(ProjectionInto(input, index, mode, out));
    }
    return {};
  }

  Result<> ProjectionInto(const VolumeInput& input, int index, mode_t mode, Payload& out) {
    const corev1::VolumeProjection& item = input.volume.volume_source().projected().sources(index);
    if (item.has_config_map()) {
      return ConfigMapInto(input, item.config_map().local_object_reference().name(),
                           item.config_map().items(), item.config_map().optional(), mode, out);
    }
    if (item.has_secret()) {
      return SecretInto(input, item.secret().local_object_reference().name(), item.secret().items(),
                        item.secret().optional(), mode, out);
    }
    if (item.has_downward_api()) return FieldsInto(input, item.downward_api().items(), mode, out);
    if (item.has_service_account_token()) return TokenInto(input, item.service_account_token(), mode, out);
    if (item.has_cluster_trust_bundle()) return AnchorsInto(input, item.cluster_trust_bundle(), mode, out);
    if (item.has_pod_certificate()) return CredentialsInto(input, index, mode, out);
    return Error(Code::kUnimplemented, "projected volume \"" + input.volume.name() +
                                           "\" has a source that this kubelet does not support");
  }

  Result<> ConfigMapInto(const VolumeInput& input, const std::string& name, const KeyItems& items,
                         bool optional, mode_t mode, Payload& out) {
    auto map = objects_.GetConfigMap(input.pod.metadata().namespace_(), name);
    if (map) return AddConfigMap(**map, items, mode, optional, out);
    if (map.error().Is(Code::kNotFound) && optional) return {};
    return Missing(map.error(), "configmap", name);
  }

  Result<> SecretInto(const VolumeInput& input, const std::string& name, const KeyItems& items, bool optional,
                      mode_t mode, Payload& out) {
    auto secret = objects_.GetSecret(input.pod.metadata().namespace_(), name);
    if (secret) return AddSecret(**secret, items, mode, optional, out);
    if (secret.error().Is(Code::kNotFound) && optional) return {};
    return Missing(secret.error(), "secret", name);
  }

  static Error Missing(const Error& error, const std::string& what, const std::string& name) {
    if (!error.Is(Code::kNotFound)) return error;
    return Error(Code::kNotFound, what + " \"" + name + "\" not found");
  }

  Result<> FieldsInto(const VolumeInput& input,
                      const google::protobuf::RepeatedPtrField<corev1::DownwardAPIVolumeFile>& items,
                      mode_t mode, Payload& out) {
    for (const auto& item : items) {
      Result<std::string> value = item.has_field_ref() ? FieldValue(input.pod, item.field_ref().field_path())
                                                       : ResourceValue(input.pod, item.resource_field_ref(),
                                                                       "", input.node.allocatable);
      if (!value) return value.error();
      out[item.path()] = {std::move(*value), ModeOf(item.has_mode(), item.mode(), mode), std::nullopt};
    }
    return {};
  }

  Result<> TokenInto(const VolumeInput& input, const corev1::ServiceAccountTokenProjection& source,
                     mode_t mode, Payload& out) {
    int64_t seconds = source.has_expiration_seconds() ? source.expiration_seconds() : kDefaultTokenSeconds;
    KEELSON_ASSIGN_OR_RETURN(std::string token, tokens_.Get(input.pod, source.audience(), seconds));
    out[source.path()] = OwnFile(input.pod, std::move(token), mode);
    return {};
  }

  Result<> AnchorsInto(const VolumeInput& input, const corev1::ClusterTrustBundleProjection& source,
                       mode_t mode, Payload& out) {
    KEELSON_ASSIGN_OR_RETURN(std::string anchors, TrustAnchors(objects_, source));
    out[source.path()] = OwnFile(input.pod, std::move(anchors), mode);
    return {};
  }

  Result<> CredentialsInto(const VolumeInput& input, int index, mode_t mode, Payload& out) {
    const auto& source = input.volume.volume_source().projected().sources(index).pod_certificate();
    KEELSON_ASSIGN_OR_RETURN(const CredentialBundle bundle,
                             objects_.GetCredentials(input.pod, input.volume, index));
    auto add = [&](const std::string& path, std::string content) {
      if (!path.empty()) out[path] = OwnFile(input.pod, std::move(content), mode);
    };
    add(source.credential_bundle_path(), bundle.key + bundle.chain);
    add(source.key_path(), bundle.key);
    add(source.certificate_chain_path(), bundle.chain);
    return {};
  }

  // Readable by the pod's user only.
  static PayloadFile OwnFile(const corev1::Pod& pod, std::string content, mode_t mode) {
    auto user = FsUser(pod);
    if (user || FsGroup(pod)) mode = 0600;
    return {std::move(content), mode, user};
  }

  Mounter& mounter_;
  ObjectSource& objects_;
  Clock& clock_;
  TokenCache tokens_;
};

}  // namespace

std::unique_ptr<VolumePlugin> NewPayloadPlugin(Mounter& mounter, ObjectSource& objects, Clock& clock) {
  return std::make_unique<PayloadPlugin>(mounter, objects, clock);
}

}  // namespace keelson::kubelet
