// How the kubelet reads API objects that pods refer to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::api::storage::v1 {
class CSIDriver;
class VolumeAttachment;
}  // namespace keelson::api::storage::v1

namespace keelson::kubelet {

// A ClusterTrustBundle, of any version that the API server has.
struct TrustBundle {
  std::string name, signer_name;
  google::protobuf::Map<std::string, std::string> labels;
  std::string pem;
};

// A private key and the certificates for it, in PEM.
struct CredentialBundle {
  std::string key, chain;
};

class ObjectSource {  // thread safe
 public:
  virtual ~ObjectSource() = default;
  // Objects are shared and immutable; calls may block. kNotFound: there is none; other codes: not known now.
  virtual Result<std::shared_ptr<const corev1::ConfigMap>> GetConfigMap(const std::string& ns,
                                                                        const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::Secret>> GetSecret(const std::string& ns,
                                                                  const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::PersistentVolumeClaim>> GetClaim(const std::string& ns,
                                                                                const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::PersistentVolume>> GetPersistentVolume(
      const std::string& name) = 0;
  virtual Result<std::shared_ptr<const api::storage::v1::CSIDriver>> GetCsiDriver(const std::string& name) {
    return Error(Code::kUnimplemented, "the CSIDriver " + name + " cannot be read without an API server");
  }
  virtual Result<std::shared_ptr<const api::storage::v1::VolumeAttachment>> GetVolumeAttachment(
      const std::string& name) {
    return Error(Code::kUnimplemented,
                 "the VolumeAttachment " + name + " cannot be read without an API server");
  }
  // The one of that name; all for "". kUnimplemented, with upstream's message: the API server lacks the API.
  virtual Result<std::vector<TrustBundle>> GetTrustBundles(const std::string& name) {
    (void)name;
    return Error(Code::kUnimplemented,
                 "ClusterTrustBundle projection is not supported in static kubelet mode");
  }
  // The certificate for the podCertificate source at `index` of a projected volume. kUnavailable: not issued yet.
  virtual Result<CredentialBundle> GetCredentials(const corev1::Pod& pod, const corev1::Volume& volume,
                                                  int index) {
    (void)pod, (void)volume, (void)index;
    return Error(Code::kUnimplemented,
                 "podCertificate projections need an API server, and the feature gate PodCertificateRequest");
  }
  // The pod is gone: drops what was kept for it.
  virtual void ForgetPod(const std::string& uid) { (void)uid; }
  // Writes the claim's status, and returns the claim as it is stored then. kConflict: it has changed meanwhile.
  virtual Result<corev1::PersistentVolumeClaim> UpdateClaimStatus(
      const corev1::PersistentVolumeClaim& claim) = 0;
  // All Services of a namespace.
  virtual std::vector<std::shared_ptr<const corev1::Service>> Services(const std::string& ns) = 0;
  struct Token {
    std::string value;
    metav1::Time expires;
  };
  // A token of the pod's service account, bound to the pod (TokenRequest). Empty `audience`: the API server's.
  virtual Result<Token> RequestToken(const corev1::Pod& pod, const std::string& audience,
                                     int64_t seconds) = 0;
};

}  // namespace keelson::kubelet
