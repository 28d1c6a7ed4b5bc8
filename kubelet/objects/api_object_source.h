// ObjectSource on the API server. Services come from an informer, ConfigMaps and Secrets from the stores of the
// configured strategy (object_store.h). Other objects are read by name when a pod needs them, and cached for a
// second, so that a burst of pods reads them once. While the API server does not answer, cached objects stay
// good, so that containers can restart.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "kubelet/certificate/pod_certificates.h"
#include "kubelet/container/objects.h"
#include "kubelet/objects/pod_references.h"
#include "kubelet/objects/trust_bundles.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

struct ChangeDetection {  // of ConfigMaps and Secrets
  std::string strategy = "Watch";
  std::function<std::optional<std::chrono::seconds>()> ttl = {};
};

class ApiObjectSource : public ObjectSource {  // thread safe
 public:
  // `services` and `clock` have to outlive it.
  ApiObjectSource(client::RestClient api, client::Informer<corev1::Service>& services,
                  const ChangeDetection& detection = {}, Clock& clock = Clock::Real());

  // The pods of this node: the ConfigMaps and Secrets that they refer to stay cached.
  void SetPod(const corev1::Pod& pod) { references_.SetPod(pod); }
  void RemovePod(const std::string& uid) { references_.RemovePod(uid); }

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
  // Reads claims and PersistentVolumes by a client of its own: a kubelet that starts needs those of all pods at once. Call
  // before other threads use the source.
  void ReadVolumesBy(client::RestClient api) { volumes_api_ = std::move(api); }
  // Enables GetCsiDriver. `drivers` has to outlive it. Call before other threads use the source.
  void ReadCsiDrivers(client::Informer<api::storage::v1::CSIDriver>& drivers) { csi_drivers_ = &drivers; }
  Result<std::shared_ptr<const api::storage::v1::CSIDriver>> GetCsiDriver(const std::string& name) override;
  // Not cached: a pod's volume needs it once.
  Result<std::shared_ptr<const api::storage::v1::VolumeAttachment>> GetVolumeAttachment(
      const std::string& name) override;
  Result<std::vector<TrustBundle>> GetTrustBundles(const std::string& name) override {
    return trust_bundles_.Get(name);
  }
  // Enables podCertificate volumes. Call before other threads use the source.
  void IssuePodCertificates(std::unique_ptr<PodCertificates> certificates) {
    pod_certificates_ = std::move(certificates);
  }
  const PodCertificates* pod_certificates() const { return pod_certificates_.get(); }  // null: disabled
  Result<CredentialBundle> GetCredentials(const corev1::Pod& pod, const corev1::Volume& volume,
                                          int index) override {
    return pod_certificates_ ? pod_certificates_->Get(pod, volume, index)
                             : ObjectSource::GetCredentials(pod, volume, index);
  }
  void ForgetPod(const std::string& uid) override {
    if (pod_certificates_) pod_certificates_->ForgetPod(uid);
  }
  Result<corev1::PersistentVolumeClaim> UpdateClaimStatus(
      const corev1::PersistentVolumeClaim& claim) override;
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
  std::optional<client::RestClient> volumes_api_;  // nullopt: api_
  TrustBundles trust_bundles_;
  std::unique_ptr<PodCertificates> pod_certificates_;  // null: disabled
  client::Informer<corev1::Service>& services_;
  client::Informer<api::storage::v1::CSIDriver>* csi_drivers_ = nullptr;  // null: standalone
  Clock& clock_;
  ApiServerBackoff api_backoff_;
  const std::unique_ptr<ObjectStore> config_maps_, secrets_;
  PodReferences references_;
  Mutex mutex_;
  // All guarded by mutex_.
  std::map<std::string, Cached<corev1::ServiceAccount>> accounts_;
  std::map<std::string, Cached<corev1::PersistentVolumeClaim>> claims_;
  std::map<std::string, Cached<corev1::PersistentVolume>> volumes_;
};

}  // namespace keelson::kubelet
