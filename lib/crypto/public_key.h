// Public keys of requests (RFC 2986) and certificates (RFC 5280): their kind, and signatures of their owners. All in
// DER. Immutable, cheap to copy, thread safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

class PublicKey {
 public:
  // Of a SubjectPublicKeyInfo. kBadRequest when it is none.
  static Result<PublicKey> FromDer(std::string_view der);
  // Of a certificate request. kBadRequest when it is none, kInvalid when it is not signed with its own key.
  static Result<PublicKey> OfRequest(std::string_view der);

  enum class Kind { kRsa, kEcdsa, kEd25519, kOther };
  Kind kind() const;
  int bits() const;           // of RSA's modulus, a multiple of 8
  std::string curve() const;  // of ECDSA: "P-256"; OpenSSL's name for a curve without such a name
  // Accepts RSA (PSS with SHA-256 and salt of any length), ECDSA (SHA-256, in ASN.1) and Ed25519, nothing else.
  bool HasSigned(std::string_view data, std::string_view signature) const;
  bool operator==(const PublicKey& other) const;

 private:
  friend struct IssuedCertificate;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The certificate that a signer has issued for a request.
struct IssuedCertificate {
  PublicKey key;
  std::chrono::system_clock::time_point not_before, not_after;
  std::vector<std::string> dns_names, emails;

  // kBadRequest when it is no certificate.
  static Result<IssuedCertificate> FromDer(std::string_view der);
};

}  // namespace keelson::crypto
