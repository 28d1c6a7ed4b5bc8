// What tools that look after a PKI ask of its files. All in PEM; of several certificates the first counts.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::crypto {

// Whether the certificate may sign others: basic constraints (RFC 5280, 4.2.1.9) say CA. False also for other texts.
bool IsAuthority(const std::string& certificate_pem);
// Whether the key of `authority_pem` has signed `certificate_pem`, whose issuer it is. Dates do not count, and neither do
// the names and usages of the certificate. False also for other texts.
bool IsSignedBy(const std::string& certificate_pem, const std::string& authority_pem);
// SHA-256 of the SubjectPublicKeyInfo in DER, in hex: what a pin of a key compares (RFC 7469, 2.4). kInvalid when it is
// no certificate.
Result<std::string> PublicKeySha256(const std::string& certificate_pem);
// The public half of a private key: a block PUBLIC KEY. kInvalid when `key_pem` is no private key.
Result<std::string> PublicKeyPem(const std::string& key_pem);
// Whether one certificate is in both bundles, byte for byte. Reading ends at the first block that cannot be parsed: callers
// refuse such bundles elsewhere. False also for texts without certificates.
bool HaveCertificateInCommon(const std::string& one_bundle, const std::string& other_bundle);

}  // namespace keelson::crypto
