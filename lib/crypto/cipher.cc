#include "lib/crypto/cipher.h"

#include <openssl/evp.h>

#include "lib/crypto/key_objects.h"

namespace keelson::crypto {
namespace {

using CipherPtr = OpenSslPtr<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free>;

unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Error Refused() { return Error(Code::kInternal, "the cipher failed"); }

const EVP_CIPHER* CbcOf(size_t key_size) {
  return key_size == 16 ? EVP_aes_128_cbc() : key_size == 24 ? EVP_aes_192_cbc() : EVP_aes_256_cbc();
}
const EVP_CIPHER* GcmOf(size_t key_size) {
  return key_size == 16 ? EVP_aes_128_gcm() : key_size == 24 ? EVP_aes_192_gcm() : EVP_aes_256_gcm();
}

bool Fits(std::string_view key, std::string_view vector, size_t vector_size) {
  return (key.size() == 16 || key.size() == 24 || key.size() == 32) && vector.size() == vector_size;
}

}  // namespace

Result<> EncryptAesCbc(std::string_view key, std::string_view vector, std::string_view plain,
                       std::string& out) {
  if (!Fits(key, vector, kAesBlock)) return Refused();
  const size_t begin = out.size();
  CipherPtr context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  if (EVP_EncryptInit_ex(context.get(), CbcOf(key.size()), nullptr, Bytes(key), Bytes(vector)) != 1) {
    return Refused();
  }
  out.resize(begin + plain.size() + kAesBlock);
  if (EVP_EncryptUpdate(context.get(), Bytes(out) + begin, &size, Bytes(plain),
                        static_cast<int>(plain.size())) != 1 ||
      EVP_EncryptFinal_ex(context.get(), Bytes(out) + begin + size, &last) != 1) {
    return Refused();
  }
  out.resize(begin + static_cast<size_t>(size + last));
  return {};
}

Result<std::string> DecryptAesCbc(std::string_view key, std::string_view vector, std::string_view blocks) {
  if (!Fits(key, vector, kAesBlock)) return Refused();
  CipherPtr context(EVP_CIPHER_CTX_new());
  std::string out(blocks.size() + kAesBlock, '\0');
  int size = 0, last = 0;
  if (EVP_DecryptInit_ex(context.get(), CbcOf(key.size()), nullptr, Bytes(key), Bytes(vector)) != 1 ||
      EVP_DecryptUpdate(context.get(), Bytes(out), &size, Bytes(blocks), static_cast<int>(blocks.size())) !=
          1) {
    return Refused();
  }
  if (EVP_DecryptFinal_ex(context.get(), Bytes(out) + size, &last) != 1) {
    return Error(Code::kInvalid, "invalid padding on input");
  }
  out.resize(static_cast<size_t>(size) + static_cast<size_t>(last));
  return out;
}

Result<> EncryptAesGcm(std::string_view key, std::string_view nonce, std::string_view plain,
                       std::string_view bound, std::string& out) {
  if (!Fits(key, nonce, kGcmNonce)) return Refused();
  const size_t begin = out.size();
  CipherPtr context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  if (EVP_EncryptInit_ex(context.get(), GcmOf(key.size()), nullptr, Bytes(key), Bytes(nonce)) != 1 ||
      EVP_EncryptUpdate(context.get(), nullptr, &size, Bytes(bound), static_cast<int>(bound.size())) != 1) {
    return Refused();
  }
  out.resize(begin + plain.size() + kGcmTag);
  unsigned char* to = Bytes(out) + begin;
  if (EVP_EncryptUpdate(context.get(), to, &size, Bytes(plain), static_cast<int>(plain.size())) != 1 ||
      EVP_EncryptFinal_ex(context.get(), to + size, &last) != 1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kGcmTag, to + plain.size()) != 1) {
    return Refused();
  }
  return {};
}

Result<std::string> DecryptAesGcm(std::string_view key, std::string_view nonce, std::string_view sealed,
                                  std::string_view bound) {
  const Error changed(Code::kInvalid, "cipher: message authentication failed");
  if (!Fits(key, nonce, kGcmNonce)) return Refused();
  if (sealed.size() < kGcmTag) return changed;
  std::string tag(sealed.substr(sealed.size() - kGcmTag));
  sealed.remove_suffix(kGcmTag);
  std::string out(sealed.size() + kAesBlock, '\0');
  CipherPtr context(EVP_CIPHER_CTX_new());
  int size = 0, last = 0;
  if (EVP_DecryptInit_ex(context.get(), GcmOf(key.size()), nullptr, Bytes(key), Bytes(nonce)) != 1 ||
      EVP_DecryptUpdate(context.get(), nullptr, &size, Bytes(bound), static_cast<int>(bound.size())) != 1 ||
      EVP_DecryptUpdate(context.get(), Bytes(out), &size, Bytes(sealed), static_cast<int>(sealed.size())) !=
          1 ||
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kGcmTag, tag.data()) != 1) {
    return Refused();
  }
  if (EVP_DecryptFinal_ex(context.get(), Bytes(out) + size, &last) != 1) return changed;
  out.resize(static_cast<size_t>(size) + static_cast<size_t>(last));
  return out;
}

}  // namespace keelson::crypto
