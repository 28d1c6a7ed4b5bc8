// Signs certificates that others ask for (RFC 2986 in, RFC 5280 out). All in PEM.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

// What a request asks for. Its signature has been verified.
struct RequestedCertificate {
  std::string common_name;                 // the last, if there are several
  std::vector<std::string> organizations;  // in order
  std::vector<std::string> dns_names, ip_addresses, emails, uris;
};
// kBadRequest for what is no request, is not signed with its own key, or has names that cannot be read.
Result<RequestedCertificate> InspectRequest(const std::string& request_pem);

struct CertificateTerms {
  std::chrono::system_clock::time_point not_before, not_after;
  std::vector<std::string> usages;  // in Kubernetes' words: "digital signature", "client auth"
};

// The certificate of a CA that signs itself, with `key_pem`, good from five minutes ago for `life` from now. kInvalid when
// `key_pem` is no private key.
Result<std::string> NewAuthorityCertificate(const std::string& key_pem, const std::string& common_name,
                                            std::chrono::seconds life);

class CertificateAuthority {  // immutable
 public:
  // kInvalid when the two do not belong together.
  static Result<CertificateAuthority> FromPem(const std::string& certificate_pem, const std::string& key_pem);

  // Subject and names as requested, everything else as `terms` say; never outlives the authority's own
  // certificate. kBadRequest for usages that nobody knows.
  Result<std::string> Sign(const std::string& request_pem, const CertificateTerms& terms) const;
  // Whether this authority's key has signed the first certificate in `certificate_pem`; false: it is none.
  bool HasSigned(const std::string& certificate_pem) const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace keelson::crypto
