#include "kubelet/objects/api_object_source.h"

#include <type_traits>

#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kFresh(1);
constexpr size_t kMostBytes = 2 << 20;  // per kind, encoded; the least recently read go first
constexpr char kByNamespace[] = "namespace";

template <typename Cache>
void DropOldest(Cache& cache) {
  size_t total = 0;
  for (const auto& [key, entry] : cache) total += entry.bytes;
  while (total > kMostBytes && cache.size() > 1) {
    auto oldest = cache.begin();
    for (auto it = cache.begin(); it != cache.end(); ++it) {
      if (it->second.read < oldest->second.read) oldest = it;
    }
    total -= oldest->second.bytes;
    cache.erase(oldest);
  }
}

template <typename T>
Result<std::shared_ptr<const T>> Typed(Result<ObjectStore::Object> object) {
  if (!object) return object.error();
  return std::static_pointer_cast<const T>(std::move(*object));
}

}  // namespace

ApiObjectSource::ApiObjectSource(client::RestClient api, client::Informer<corev1::Service>& services,
                                 const ChangeDetection& detection, Clock& clock)
    : api_(std::move(api)),
      trust_bundles_(api_),
      services_(services),
      clock_(clock),
      api_backoff_(clock),
      config_maps_(NewObjectStore(detection.strategy, {api_, api::ResourceOf<corev1::ConfigMap>(),
                                                       api_backoff_, detection.ttl, clock})),
      secrets_(NewObjectStore(detection.strategy,
                              {api_, api::ResourceOf<corev1::Secret>(), api_backoff_, detection.ttl, clock})),
      references_(*config_maps_, *secrets_) {
  services_.AddIndex(kByNamespace, [](const corev1::Service& service) {
    return std::vector<std::string>{service.metadata().namespace_()};
  });
}

template <typename T>
Result<std::shared_ptr<const T>> ApiObjectSource::Get(std::map<std::string, Cached<T>>& cache,
                                                      const std::string& ns, const std::string& name) {
  std::string key = api::KeyOf(ns, name);
  {
    MutexLock lock(mutex_);
    auto it = cache.find(key);
    if (it != cache.end() && (clock_.SteadyNow() - it->second.read < kFresh || api_backoff_.Active())) {
      return it->second.object;
    }
  }
  SteadyTime asked = clock_.SteadyNow();
  constexpr bool kOfVolumes =
      std::is_same_v<T, corev1::PersistentVolumeClaim> || std::is_same_v<T, corev1::PersistentVolume>;
  auto object = (kOfVolumes && volumes_api_ ? *volumes_api_ : api_).template Get<T>(ns, name);
  if (object) {
    api_backoff_.Succeeded();
  } else {
    api_backoff_.Failed(object.error());
  }
  MutexLock lock(mutex_);
  if (!object) {
    if (auto it = cache.find(key); it != cache.end() && NoAnswer(object.error())) return it->second.object;
    cache.erase(key);
    return object.error();
  }
  size_t bytes = object->ByteSizeLong();
  auto shared = std::make_shared<const T>(std::move(*object));
  cache[key] = {shared, asked, bytes};
  DropOldest(cache);
  return shared;
}

Result<std::shared_ptr<const corev1::ConfigMap>> ApiObjectSource::GetConfigMap(const std::string& ns,
                                                                               const std::string& name) {
  return Typed<corev1::ConfigMap>(config_maps_->Get(ns, name));
}

Result<std::shared_ptr<const corev1::Secret>> ApiObjectSource::GetSecret(const std::string& ns,
                                                                         const std::string& name) {
  return Typed<corev1::Secret>(secrets_->Get(ns, name));
}

Result<std::shared_ptr<const corev1::ServiceAccount>> ApiObjectSource::GetServiceAccount(
    const std::string& ns, const std::string& name) {
  return Get(accounts_, ns, name);
}

Result<std::shared_ptr<const corev1::PersistentVolumeClaim>> ApiObjectSource::GetClaim(
    const std::string& ns, const std::string& name) {
  return Get(claims_, ns, name);
}

Result<std::shared_ptr<const corev1::PersistentVolume>> ApiObjectSource::GetPersistentVolume(
    const std::string& name) {
  return Get(volumes_, "", name);
}

Result<std::shared_ptr<const api::storage::v1::CSIDriver>> ApiObjectSource::GetCsiDriver(
    const std::string& name) {
  if (!csi_drivers_) return ObjectSource::GetCsiDriver(name);
  if (!csi_drivers_->synced()) return Error(Code::kUnavailable, "CSIDrivers have not been synced yet");
  auto driver = csi_drivers_->Get("", name);
  if (driver) return driver;
  return Error(Code::kNotFound, "csidriver.storage.k8s.io \"" + name + "\" not found");
}

Result<std::shared_ptr<const api::storage::v1::VolumeAttachment>> ApiObjectSource::GetVolumeAttachment(
    const std::string& name) {
  auto attachment = api_.Get<api::storage::v1::VolumeAttachment>("", name);
  if (!attachment) return attachment.error();
  return std::make_shared<const api::storage::v1::VolumeAttachment>(std::move(*attachment));
}

Result<corev1::PersistentVolumeClaim> ApiObjectSource::UpdateClaimStatus(
    const corev1::PersistentVolumeClaim& claim) {
  auto stored = api_.UpdateStatus(claim);
  {
    // What is cached is out of date, also when the write has met a conflict.
    MutexLock lock(mutex_);
    claims_.erase(api::KeyOf(claim));
  }
  if (!stored) return stored.error().Wrap("update the status of PVC " + api::KeyOf(claim));
  return *std::move(stored);
}

std::vector<std::shared_ptr<const corev1::Service>> ApiObjectSource::Services(const std::string& ns) {
  return services_.ByIndex(kByNamespace, ns);
}

Result<ObjectSource::Token> ApiObjectSource::RequestToken(const corev1::Pod& pod, const std::string& audience,
                                                          int64_t seconds) {
  authenticationv1::TokenRequest request, answer;
  if (!audience.empty()) request.mutable_spec()->add_audiences(audience);
  request.mutable_spec()->set_expiration_seconds(seconds);
  auto& bound = *request.mutable_spec()->mutable_bound_object_ref();
  bound.set_kind("Pod");
  bound.set_api_version("v1");
  bound.set_name(pod.metadata().name());
  bound.set_uid(pod.metadata().uid());
  std::string account =
      pod.spec().service_account_name().empty() ? "default" : pod.spec().service_account_name();
  auto done = api_.CreateSub(api::ResourceOf<corev1::ServiceAccount>(), pod.metadata().namespace_(), account,
                             "token", request, &answer);
  if (!done) return done.error().Wrap("failed to fetch token");
  return Token{answer.status().token(), answer.status().expiration_timestamp()};
}

}  // namespace keelson::kubelet
