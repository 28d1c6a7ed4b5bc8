#include "kubelet/api_objects.h"

#include "lib/api/meta.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::seconds kFresh(1);
constexpr size_t kSweepAbove = 64;  // entries; older ones are dropped then
constexpr char kByNamespace[] = "namespace";

}  // namespace

ApiObjects::ApiObjects(client::RestClient api, client::Informer<corev1::Service>& services, Clock& clock)
    : api_(std::move(api)), services_(services), clock_(clock) {
  services_.AddIndex(kByNamespace, [](const corev1::Service& service) {
    return std::vector<std::string>{service.metadata().namespace_()};
  });
}

template <typename T>
Result<std::shared_ptr<const T>> ApiObjects::Get(std::map<std::string, Cached<T>>& cache,
                                                 const std::string& ns, const std::string& name) {
  std::string key = api::KeyOf(ns, name);
  {
    MutexLock lock(mutex_);
    auto it = cache.find(key);
    if (it != cache.end() &&
        (it->second.object->immutable() || clock_.SteadyNow() - it->second.read < kFresh))
      return it->second.object;
  }
  SteadyTime asked = clock_.SteadyNow();
  auto object = api_.Get<T>(ns, name);
  MutexLock lock(mutex_);
  if (!object) {
    cache.erase(key);
    return object.error();
  }
  auto shared = std::make_shared<const T>(std::move(*object));
  cache[key] = {shared, asked};
  if (cache.size() > kSweepAbove)
    std::erase_if(cache, [&](const auto& item) { return asked - item.second.read > kFresh * 60; });
  return shared;
}

Result<std::shared_ptr<const corev1::ConfigMap>> ApiObjects::GetConfigMap(const std::string& ns,
                                                                          const std::string& name) {
  return Get(config_maps_, ns, name);
}

Result<std::shared_ptr<const corev1::Secret>> ApiObjects::GetSecret(const std::string& ns,
                                                                    const std::string& name) {
  return Get(secrets_, ns, name);
}

std::vector<std::shared_ptr<const corev1::Service>> ApiObjects::Services(const std::string& ns) {
  return services_.ByIndex(kByNamespace, ns);
}

Result<ObjectSource::Token> ApiObjects::RequestToken(const corev1::Pod& pod, const std::string& audience,
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
