// Signs certificates for requests (RFC 2986 in, RFC 5280 out). All in PEM.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

// The subject of a request whose signature has been verified.
struct RequestedCertificate {
  std::string common_name;                 // the last, if there are several
  std::vector<std::string> organizations;  // in order
  std::vector<std::string> dns_names, ip_addresses, emails, uris;
};
// kBadRequest for a text that is no request, a wrong signature, and malformed names.
Result<RequestedCertificate> InspectRequest(const std::string& request_pem);

struct CertificateTerms {
  std::chrono::system_clock::time_point not_before, not_after;
  std::vector<std::string> usages;  // Kubernetes' names: "digital signature", "client auth"
};

// A self-signed CA certificate with the key `key_pem`, valid from five minutes ago until `life` from now. `common_name` is
// its alternative name too, as kubeadm has it: a DNS name. kInvalid when `key_pem` is no private key.
Result<std::string> NewAuthorityCertificate(const std::string& key_pem, const std::string& common_name,
                                            std::chrono::seconds life);

class CertificateAuthority {  // immutable
 public:
  // kInvalid when the two do not belong together.
  static Result<CertificateAuthority> FromPem(const std::string& certificate_pem, const std::string& key_pem);

  // Signs the requested subject and names; `terms` set everything else. The certificate expires no later than the
  // authority's. kBadRequest for unknown usages.
  Result<std::string> Sign(const std::string& request_pem, const CertificateTerms& terms) const;
  // Whether this authority's key has signed the first certificate in `certificate_pem`; false also for other texts.
  bool HasSigned(const std::string& certificate_pem) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace keelson::crypto
