#include "lib/crypto/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <cstdlib>

#include "lib/base/text.h"
#include "lib/crypto/key_objects.h"

namespace keelson::crypto {
std::string Sha1(std::string_view bytes) {
  std::string out(SHA_DIGEST_LENGTH, '\0');
  SHA1(Bytes(bytes), bytes.size(), reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string Sha256(std::string_view bytes) {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  SHA256(Bytes(bytes), bytes.size(), reinterpret_cast<unsigned char*>(out.data()));
  return out;
}

std::string Sha256Hex(std::string_view bytes) { return Hex(Sha256(bytes)); }

void Sha256Sum::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256Sum::Sha256Sum() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) std::abort();
}

void Sha256Sum::Add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

std::string Sha256Sum::Finish() {
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr);
  return out;
}

}  // namespace keelson::crypto
