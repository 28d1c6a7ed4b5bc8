// Makes a cluster's certificates and keys on the machine. What is there is kept, after the checks that kubeadm makes: an
// authority is one, and a certificate is signed by its authority and belongs to its key.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "ctl/host/host.h"
#include "ctl/pki/plan.h"
#include "lib/base/clock.h"

namespace keelson::ctl {

// Where and how. References outlive the object.
struct CertificateStore {
  Host& host;
  std::string directory;  // /etc/kubernetes/pki
  std::string key_kind;   // of new keys
  std::ostream& out;      // progress
  Clock& clock = Clock::Real();
};

struct Authority {
  std::string certificate_pem;
  std::optional<std::string> key_pem;  // nullopt: an external CA, whose key is elsewhere
};

// kNotFound, kInvalid: there is no usable one.
Result<Authority> LoadAuthority(const Host& host, const std::string& directory, const std::string& name);

// Makes the certificate of the plan and its key, or keeps the present ones. A key without a certificate is a key that an
// earlier run has left, and is used. kInvalid: the present files are wrong, or the authority's key is elsewhere.
Result<> EnsureCertificate(const CertificateStore& store, const CertificatePlan& plan);
// sa.key and sa.pub.
Result<> EnsureServiceAccountKey(const CertificateStore& store);

// kInvalid where the certificate has expired or is not valid yet, with the dates and what to do. `what`: "ca certificate
// authority".
Result<> CheckDates(const std::string& certificate_pem, const std::string& what, WallTime now);

// Signs a new certificate for the key `key_pem`, valid from five minutes ago.
// kInvalid: the authority's key is elsewhere, or the authority has expired.
Result<std::string> SignFor(const Authority& authority, const std::string& key_pem,
                            const crypto::CertificateSubject& subject, const std::vector<std::string>& usages,
                            std::chrono::seconds life, Clock& clock);

}  // namespace keelson::ctl
