// Keys, requests and certificates of clients and servers. All in PEM.
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

// Generates a key, in PKCS #8: RSA2048, RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519; kInvalid for any
// other kind.
Result<std::string> NewPrivateKey(std::string_view kind = "ECDSAP256");
// A request for `key_pem`. With an empty subject it contains only the public key. kInvalid when `key_pem` is no private
// key.
Result<std::string> NewCertificateRequest(const std::string& key_pem, const CertificateSubject& subject);
// The subject of a request (RFC 2986, DER): common name (the last, if there are several) and organizations, no other
// names. The signature is not verified. kInvalid when it is no request, kBadRequest when a name cannot be read.
Result<CertificateSubject> SubjectOfRequest(std::string_view der);
// A self-signed server certificate, valid from an hour ago until `life` from now.
Result<std::string> NewSelfSigned(const std::string& key_pem, const CertificateSubject& subject,
                                  std::chrono::seconds life);

struct CertificateInfo {
  std::chrono::system_clock::time_point not_before, not_after;
  CertificateSubject subject;
};
// Of the first certificate in `pem`.
Result<CertificateInfo> InspectCertificate(const std::string& pem);
// Whether the first certificate of the one text has the key of the first private key in the other.
bool BelongTogether(const std::string& certificate_pem, const std::string& key_pem);

}  // namespace keelson::crypto
