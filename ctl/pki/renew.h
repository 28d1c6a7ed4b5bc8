// What `nodectl certs` does: tells when certificates expire, renews them, and makes requests for an external CA.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "ctl/pki/certificates.h"
#include "ctl/pki/kubeconfig.h"

namespace keelson::ctl {

// A certificate that init makes and people look after: in a file of its own or inside a kubeconfig.
struct ManagedCertificate {
  std::string name;       // apiserver, admin.conf
  std::string authority;  // ca, front-proxy-ca
  std::string long_name;  // "certificate for serving the Kubernetes API"
  std::vector<std::string> usages;
  std::string kubeconfig;  // its path; empty: NAME.crt in the certificates' directory
  std::string file = {};   // etcd/peer, where it is not NAME
};
// Whether the cluster has such a certificate: etcd's exist where its CA is.
bool IsManaged(const CertificateStore& store, const ManagedCertificate& managed);
const std::vector<ManagedCertificate>& ManagedCertificates();  // in kubeadm's order
const std::vector<std::string>& ManagedAuthorities();

struct Expiration {
  std::string name, authority;  // `authority` is empty for a CA
  bool missing = false;
  WallTime not_after;
  bool external = false;  // its CA's key is not on this machine
};
struct Expirations {
  std::vector<Expiration> certificates, authorities;
};
// kInvalid: a file is no certificate.
Result<Expirations> FindExpirations(const CertificateStore& store);
std::string ExpirationTable(const Expirations& found, WallTime now);
boost::json::value ExpirationDocument(const Expirations& found, WallTime now);

// Signs the present key, subject and names anew, for `life`. The file is replaced in one step, so that certificate and key
// belong together at every moment. kNotFound: the certificate is missing. kUnimplemented: the CA's
// key is not here. kInvalid: the CA has expired.
Result<> Renew(const CertificateStore& store, const ManagedCertificate& managed, std::chrono::seconds life);

// Keys, requests NAME.csr, and kubeconfigs without a certificate, for a CA whose key is elsewhere. kAlreadyExists: one of
// the files is there.
Result<> MakeRequests(const CertificateStore& store, const std::vector<CertificatePlan>& certificates,
                      const std::vector<KubeconfigPlan>& kubeconfigs, const std::string& kubeconfig_directory,
                      const std::string& cluster);

}  // namespace keelson::ctl
