// Owners of OpenSSL's objects, and JOSE's elliptic curves (RFC 7518). Internal to lib/crypto.
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace keelson::crypto {

template <auto Free>
struct OpenSslDeleter {
  template <typename T>
  void operator()(T* p) const {
    Free(p);
  }
};
template <typename T, auto Free>
using OpenSslPtr = std::unique_ptr<T, OpenSslDeleter<Free>>;

using BioPtr = OpenSslPtr<BIO, BIO_free>;
using KeyPtr = OpenSslPtr<EVP_PKEY, EVP_PKEY_free>;
using DigestPtr = OpenSslPtr<EVP_MD_CTX, EVP_MD_CTX_free>;
using BignumPtr = OpenSslPtr<BIGNUM, BN_free>;

inline const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

struct Curve {
  std::string_view group;  // OpenSSL's name
  std::string_view name;   // JOSE's: P-256
  std::string_view algorithm;
  size_t bytes;  // of a coordinate
  const EVP_MD* (*digest)();
};
// Null for other curves than P-256, P-384 and P-521.
const Curve* CurveOf(EVP_PKEY* key);
const Curve* CurveNamed(std::string_view name);

// Convert ECDSA signatures: DER in OpenSSL, two adjacent fixed-width numbers in JOSE. Empty: not a signature.
std::string JoseOfDer(std::string_view der, const Curve& curve);
std::string DerOfJose(std::string_view jose, const Curve& curve);

}  // namespace keelson::crypto
