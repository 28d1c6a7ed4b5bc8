// Asymmetric keys that sign and verify JOSE tokens (RFC 7515, 7517, 7518): RS256 for RSA keys,
// ES256, ES384 and ES512 for the NIST curves. Immutable, cheap to copy, thread safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::crypto {

class SigningKey {
 public:
  // All keys of a PEM file: private keys, public keys, certificates. kInvalid without a key, or with a key of a kind
  // that cannot sign.
  static Result<std::vector<SigningKey>> FromPem(std::string_view pem);
  // A new RSA 2048 key, for tests and first starts.
  static Result<SigningKey> GenerateRsa();

  bool is_private() const;
  const std::string& algorithm() const;  // RS256, ES256, ...
  // base64url(SHA-256(SubjectPublicKeyInfo in DER)): Kubernetes' `kid`.
  const std::string& id() const;
  // Signature over `data` in JOSE form (ECDSA: r and s side by side). Private keys only.
  Result<std::string> Sign(std::string_view data) const;
  bool Verify(std::string_view data, std::string_view signature) const;
  // The public key as JWK members: {"kty", "RSA"}, {"n", ...}, ...; use, kid and alg included.
  std::vector<std::pair<std::string, std::string>> Jwk() const;
  Result<std::string> PrivatePem() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace keelson::crypto
