// What a client or server needs to come by a certificate of its own. All in PEM.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

struct CertificateSubject {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names, ip_addresses;

  bool operator==(const CertificateSubject&) const = default;
};

// In PKCS #8. RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519; kInvalid for any other kind.
Result<std::string> NewPrivateKey(std::string_view kind = "ECDSAP256");
// An empty subject makes a request that says nothing but the public key. Also tells whether `key_pem` is a
// private key at all: kInvalid.
Result<std::string> NewCertificateRequest(const std::string& key_pem, const CertificateSubject& subject);
// What a request (RFC 2986, DER) says of its subject: common name (the last, if there are several) and organizations, no
// other names. Nobody has looked at its signature. kInvalid when it is no request, kBadRequest when a name cannot be read.
Result<CertificateSubject> SubjectOfRequest(std::string_view der);
// For a server, good from an hour ago for `life` from now.
Result<std::string> NewSelfSigned(const std::string& key_pem, const CertificateSubject& subject,
                                  std::chrono::seconds life);

struct CertificateInfo {
  std::chrono::system_clock::time_point not_before, not_after;
  CertificateSubject subject;
};
// Of the first certificate in `pem`.
Result<CertificateInfo> InspectCertificate(const std::string& pem);
// Whether the first certificate in the one belongs to the first private key in the other.
bool BelongTogether(const std::string& certificate_pem, const std::string& key_pem);

}  // namespace keelson::crypto
