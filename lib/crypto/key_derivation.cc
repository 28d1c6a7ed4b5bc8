#include "lib/crypto/key_derivation.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <memory>

namespace keelson::crypto {
namespace {

OSSL_PARAM Octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace

Result<std::string> DeriveKey(std::string_view secret, std::string_view salt, std::string_view info,
                              size_t length) {
  if (secret.empty()) return Error(Code::kInvalid, "derive key: the secret is empty");
  std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  if (!kdf) return Error(Code::kUnimplemented, "derive key: no HKDF in this OpenSSL");
  std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  char digest[] = "SHA256";
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
                             Octets(OSSL_KDF_PARAM_KEY, secret), Octets(OSSL_KDF_PARAM_SALT, salt),
                             Octets(OSSL_KDF_PARAM_INFO, info), OSSL_PARAM_construct_end()};
  std::string out(length, '\0');
  if (!context ||
      EVP_KDF_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), length, parameters) != 1) {
    return Error(Code::kInternal, "derive key: OpenSSL refuses");
  }
  return out;
}

std::string HmacSha256(std::string_view secret, std::string_view data) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(data.data()), data.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(size);
  return out;
}

}  // namespace keelson::crypto
