// Requests a certificate from the cluster (CertificateSigningRequest, certificates.k8s.io/v1).
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/client/rest.h"
#include "lib/crypto/certificates.h"

namespace keelson::kubelet {

struct CertificateTemplate {
  std::string name;  // of the request; an existing one is waited for. Empty: csr-xxxxx
  std::string signer;
  std::vector<std::string> usages;
  crypto::CertificateSubject subject;
};
CertificateTemplate ClientCertificateTemplate(const std::string& node_name);
CertificateTemplate ServingCertificateTemplate(const std::string& node_name,
                                               std::vector<std::string> dns_names,
                                               std::vector<std::string> ip_addresses);

// Creates the request and waits. Returns the certificate in PEM. kForbidden: denied, or the signer failed; kTimeout:
// not decided in time.
Result<std::string> RequestCertificate(const client::RestClient& api, const CertificateTemplate& wanted,
                                       const std::string& key_pem, std::chrono::seconds timeout,
                                       std::stop_token stop);

}  // namespace keelson::kubelet
