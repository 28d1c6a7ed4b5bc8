// ObjectSource on the API server: Services from an informer, ConfigMaps and Secrets as the configuration's
// strategy has it (objects/reader.h), the rest by name, when a pod needs it. What has been read of the rest
// is good for a second, so that a burst of pods reads it once, and for as long as the API server is away:
// containers start again meanwhile.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>

#include "kubelet/certificate/pod_certificates.h"
#include "kubelet/container/objects.h"
#include "kubelet/objects/pod_references.h"
#include "kubelet/objects/trust_bundles.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

struct ChangeDetection {  // of ConfigMaps and Secrets
  std::string strategy = "Watch";
  std::function<std::optional<std::chrono::seconds>()> ttl = {};
};

class ApiObjects : public ObjectSource {  // thread safe
 public:
  ApiObjects(client::RestClient api, client::Informer<corev1::Service>& services,
             const ChangeDetection& detection = {}, Clock& clock = Clock::Real());

  // The pods of this node, as the API has them: what they refer to is kept for them.
  void SetPod(const corev1::Pod& pod) { references_.Set(pod); }
  void RemovePod(const std::string& uid) { references_.Remove(uid); }

  Result<std::shared_ptr<const corev1::ConfigMap>> GetConfigMap(const std::string& ns,
                                                                const std::string& name) override;
  Result<std::shared_ptr<const corev1::Secret>> GetSecret(const std::string& ns,
                                                          const std::string& name) override;
  Result<std::shared_ptr<const corev1::ServiceAccount>> GetServiceAccount(const std::string& ns,
                                                                          const std::string& name);
  Result<std::shared_ptr<const corev1::PersistentVolumeClaim>> GetClaim(const std::string& ns,
                                                                        const std::string& name) override;
  Result<std::shared_ptr<const corev1::PersistentVolume>> GetPersistentVolume(
      const std::string& name) override;
  Result<std::vector<TrustBundle>> GetTrustBundles(const std::string& name) override {
    return trust_bundles_.Get(name);
  }
  // From now on there are certificates for pods.
  void IssuePodCertificates(std::unique_ptr<PodCertificates> certificates) {
    pod_certificates_ = std::move(certificates);
  }
  const PodCertificates* pod_certificates() const { return pod_certificates_.get(); }
  Result<CredentialBundle> GetCredentials(const corev1::Pod& pod, const corev1::Volume& volume,
                                          int index) override {
    return pod_certificates_ ? pod_certificates_->Get(pod, volume, index)
                             : ObjectSource::GetCredentials(pod, volume, index);
  }
  void ForgetPod(const std::string& uid) override {
    if (pod_certificates_) pod_certificates_->ForgetPod(uid);
  }
  Result<> MarkExpanded(const corev1::PersistentVolumeClaim& claim, const Quantity& capacity) override;
  std::vector<std::shared_ptr<const corev1::Service>> Services(const std::string& ns) override;
  Result<Token> RequestToken(const corev1::Pod& pod, const std::string& audience, int64_t seconds) override;

 private:
  template <typename T>
  struct Cached {
    std::shared_ptr<const T> object;
    SteadyTime read;
    size_t bytes;
  };
  template <typename T>
  Result<std::shared_ptr<const T>> Get(std::map<std::string, Cached<T>>& cache, const std::string& ns,
                                       const std::string& name);

  client::RestClient api_;
  TrustBundles trust_bundles_;
  std::unique_ptr<PodCertificates> pod_certificates_;  // null: there are none
  client::Informer<corev1::Service>& services_;
  Clock& clock_;
  Silence silence_;
  const std::unique_ptr<ObjectReader> config_maps_, secrets_;
  PodReferences references_;
  Mutex mutex_;
  // All guarded by mutex_.
  std::map<std::string, Cached<corev1::ServiceAccount>> accounts_;
  std::map<std::string, Cached<corev1::PersistentVolumeClaim>> claims_;
  std::map<std::string, Cached<corev1::PersistentVolume>> volumes_;
};

}  // namespace keelson::kubelet
