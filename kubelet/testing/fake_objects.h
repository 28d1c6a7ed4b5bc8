// An ObjectSource in memory, by "namespace/name".
#pragma once

#include <map>
#include <string>

#include "kubelet/container/objects.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/base/clock.h"

namespace keelson::kubelet {

class FakeObjects : public ObjectSource {
 public:
  explicit FakeObjects(Clock& clock = Clock::Real()) : clock_(clock) {}

  template <typename T>
  void Put(const std::string& json) {
    auto object = std::make_shared<T>();
    if (auto decoded = api::DecodeJson(json, *object); !decoded) std::abort();
    Map<T>()[api::KeyOf(*object)] = object;
  }
  template <typename T>
  std::map<std::string, std::shared_ptr<const T>>& Map() {
    if constexpr (std::is_same_v<T, corev1::ConfigMap>) return config_maps_;
    if constexpr (std::is_same_v<T, corev1::Secret>) return secrets_;
    if constexpr (std::is_same_v<T, corev1::PersistentVolumeClaim>) return claims_;
    if constexpr (std::is_same_v<T, corev1::PersistentVolume>) return volumes_;
    if constexpr (std::is_same_v<T, corev1::Service>) return services_;
    if constexpr (std::is_same_v<T, api::storage::v1::CSIDriver>) return csi_drivers_;
    if constexpr (std::is_same_v<T, api::storage::v1::VolumeAttachment>) return attachments_;
  }
  // All reads fail with it, as if the API server were away.
  std::optional<Error> failure;
  int token_requests = 0;
  std::vector<std::string> expanded;                      // claims that have got another status.capacity
  std::optional<std::vector<TrustBundle>> trust_bundles;  // nullopt: the API server lacks the API
  std::map<std::string, CredentialBundle> credentials;    // by volume and index: "v/0"

  Result<std::shared_ptr<const corev1::ConfigMap>> GetConfigMap(const std::string& ns,
                                                                const std::string& name) override {
    return Find<corev1::ConfigMap>(ns, name);
  }
  Result<std::shared_ptr<const corev1::Secret>> GetSecret(const std::string& ns,
                                                          const std::string& name) override {
    return Find<corev1::Secret>(ns, name);
  }
  Result<std::shared_ptr<const corev1::PersistentVolumeClaim>> GetClaim(const std::string& ns,
                                                                        const std::string& name) override {
    return Find<corev1::PersistentVolumeClaim>(ns, name);
  }
  Result<std::shared_ptr<const corev1::PersistentVolume>> GetPersistentVolume(
      const std::string& name) override {
    return Find<corev1::PersistentVolume>("", name);
  }
  Result<std::shared_ptr<const api::storage::v1::CSIDriver>> GetCsiDriver(const std::string& name) override {
    return Find<api::storage::v1::CSIDriver>("", name);
  }
  Result<std::shared_ptr<const api::storage::v1::VolumeAttachment>> GetVolumeAttachment(
      const std::string& name) override {
    return Find<api::storage::v1::VolumeAttachment>("", name);
  }
  Result<std::vector<TrustBundle>> GetTrustBundles(const std::string& name) override {
    if (failure) return *failure;
    if (!trust_bundles) return ObjectSource::GetTrustBundles(name);
    std::vector<TrustBundle> out;
    for (const TrustBundle& bundle : *trust_bundles) {
      if (name.empty() || bundle.name == name) out.push_back(bundle);
    }
    if (!name.empty() && out.empty()) return Error(Code::kNotFound, "\"" + name + "\" not found");
    return out;
  }
  Result<CredentialBundle> GetCredentials(const corev1::Pod&, const corev1::Volume& volume,
                                          int index) override {
    auto it = credentials.find(volume.name() + "/" + std::to_string(index));
    if (it == credentials.end()) return Error(Code::kUnavailable, "credential bundle is not issued yet");
    return it->second;
  }
  Result<corev1::PersistentVolumeClaim> UpdateClaimStatus(
      const corev1::PersistentVolumeClaim& claim) override {
    if (failure) return *failure;
    auto& known = claims_[api::KeyOf(claim)];
    const auto size = [](const corev1::PersistentVolumeClaim& of) {
      const auto it = of.status().capacity().find("storage");
      return it == of.status().capacity().end() ? "" : it->second.string();
    };
    if (known && size(*known) != size(claim)) expanded.push_back(claim.metadata().name());
    known = std::make_shared<const corev1::PersistentVolumeClaim>(claim);
    return claim;
  }
  std::vector<std::shared_ptr<const corev1::Service>> Services(const std::string& ns) override {
    std::vector<std::shared_ptr<const corev1::Service>> out;
    for (const auto& [key, service] : services_) {
      if (service->metadata().namespace_() == ns) out.push_back(service);
    }
    return out;
  }
  Result<Token> RequestToken(const corev1::Pod&, const std::string& audience, int64_t seconds) override {
    if (failure) return *failure;
    ++token_requests;
    return Token{"token-" + audience + "-" + std::to_string(token_requests),
                 api::ToTime(clock_.Now() + std::chrono::seconds(seconds))};
  }

 private:
  template <typename T>
  Result<std::shared_ptr<const T>> Find(const std::string& ns, const std::string& name) {
    if (failure) return *failure;
    auto it = Map<T>().find(api::KeyOf(ns, name));
    if (it == Map<T>().end()) return Error(Code::kNotFound, "\"" + name + "\" not found");
    return it->second;
  }

  Clock& clock_;
  std::map<std::string, std::shared_ptr<const corev1::ConfigMap>> config_maps_;
  std::map<std::string, std::shared_ptr<const corev1::Secret>> secrets_;
  std::map<std::string, std::shared_ptr<const corev1::PersistentVolumeClaim>> claims_;
  std::map<std::string, std::shared_ptr<const corev1::PersistentVolume>> volumes_;
  std::map<std::string, std::shared_ptr<const corev1::Service>> services_;
  std::map<std::string, std::shared_ptr<const api::storage::v1::CSIDriver>> csi_drivers_;
  std::map<std::string, std::shared_ptr<const api::storage::v1::VolumeAttachment>> attachments_;
};

}  // namespace keelson::kubelet
