// API objects that pods refer to, as the kubelet reads them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// A ClusterTrustBundle of whatever version the API server has.
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
  // kNotFound when there is none; other codes when it cannot be known now.
  virtual Result<std::shared_ptr<const corev1::ConfigMap>> GetConfigMap(const std::string& ns,
                                                                        const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::Secret>> GetSecret(const std::string& ns,
                                                                  const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::PersistentVolumeClaim>> GetClaim(const std::string& ns,
                                                                                const std::string& name) = 0;
  virtual Result<std::shared_ptr<const corev1::PersistentVolume>> GetPersistentVolume(
      const std::string& name) = 0;
  // The one of that name, or all of them for "". kUnimplemented, in upstream's words, where there is no such
  // API.
  virtual Result<std::vector<TrustBundle>> GetTrustBundles(const std::string& name) {
    (void)name;
    return Error(Code::kUnimplemented,
                 "ClusterTrustBundle projection is not supported in static kubelet mode");
  }
  // Of the podCertificate source at `index` of a projected volume. kUnavailable: it is not issued yet.
  virtual Result<CredentialBundle> GetCredentials(const corev1::Pod& pod, const corev1::Volume& volume,
                                                  int index) {
    (void)pod, (void)volume, (void)index;
    return Error(Code::kUnimplemented,
                 "podCertificate projections need an API server, and the feature gate PodCertificateRequest");
  }
  virtual void ForgetPod(const std::string& uid) { (void)uid; }
  // The claim's volume is as large as it asks: its status says so from now on.
  virtual Result<> MarkExpanded(const corev1::PersistentVolumeClaim& claim, const Quantity& capacity) = 0;
  // All Services of a namespace.
  virtual std::vector<std::shared_ptr<const corev1::Service>> Services(const std::string& ns) = 0;
  // A token of `service_account` bound to the pod, as the TokenRequest API gives it.
  struct Token {
    std::string value;
    metav1::Time expires;
  };
  virtual Result<Token> RequestToken(const corev1::Pod& pod, const std::string& audience,
                                     int64_t seconds) = 0;
};

}  // namespace keelson::kubelet
