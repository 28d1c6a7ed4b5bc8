#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sodium.h>

#include <optional>

#include "controlplane/storage/transformer.h"

namespace keelson::storage {
namespace {

constexpr size_t kBlock = 16, kNonce = 12, kTag = 16, kInfo = 32;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipher>;

Error Failed(std::string what) { return Error(Code::kInternal, std::move(what)); }
Error LibraryFailed() { return Failed("the cipher failed"); }

const EVP_CIPHER* CbcOf(size_t key_size) {
  return key_size == 16 ? EVP_aes_128_cbc() : key_size == 24 ? EVP_aes_192_cbc() : EVP_aes_256_cbc();
}
const EVP_CIPHER* GcmOf(size_t key_size) {
  return key_size == 16 ? EVP_aes_128_gcm() : key_size == 24 ? EVP_aes_192_gcm() : EVP_aes_256_gcm();
}

// IV, then the blocks, padded as PKCS #7 has it.
class AesCbc : public Transformer {
 public:
  explicit AesCbc(std::string key) : key_(std::move(key)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view) const override {
    if (data.size() < kBlock) return Failed("the stored data was shorter than the required size");
    std::string_view blocks = data.substr(kBlock);
    if (blocks.size() % kBlock != 0) return Failed("the stored data is not a multiple of the block size");
    if (blocks.empty()) return Failed("invalid padding on input");
    CipherContext context(EVP_CIPHER_CTX_new());
    std::string out(blocks.size() + kBlock, '\0');
    int size = 0, last = 0;
    if (EVP_DecryptInit_ex(context.get(), CbcOf(key_.size()), nullptr, Bytes(key_), Bytes(data)) != 1 ||
        EVP_DecryptUpdate(context.get(), Bytes(out), &size, Bytes(blocks), static_cast<int>(blocks.size())) !=
            1) {
      return LibraryFailed();
    }
    if (EVP_DecryptFinal_ex(context.get(), Bytes(out) + size, &last) != 1)
      return Failed("invalid padding on input");
    out.resize(static_cast<size_t>(size + last));
    return Opened{std::move(out), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    std::string out = RandomBytes(kBlock);
    out.resize(kBlock + bytes.size() + kBlock);
    CipherContext context(EVP_CIPHER_CTX_new());
    int size = 0, last = 0;
    if (EVP_EncryptInit_ex(context.get(), CbcOf(key_.size()), nullptr, Bytes(key_), Bytes(out)) != 1 ||
        EVP_EncryptUpdate(context.get(), Bytes(out) + kBlock, &size, Bytes(bytes),
                          static_cast<int>(bytes.size())) != 1 ||
        EVP_EncryptFinal_ex(context.get(), Bytes(out) + kBlock + size, &last) != 1) {
      return LibraryFailed();
    }
    out.resize(kBlock + static_cast<size_t>(size + last));
    return out;
  }

 private:
  const std::string key_;
};

// Nonce, ciphertext, tag; the etcd key is authenticated with it.
class AesGcm : public Transformer {
 public:
  explicit AesGcm(std::string key) : key_(std::move(key)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    if (data.size() < kNonce + kTag) return Failed("the stored data was shorter than the required size");
    std::string_view sealed = data.substr(kNonce, data.size() - kNonce - kTag);
    std::string tag(data.substr(data.size() - kTag)), out(sealed.size() + kBlock, '\0');
    CipherContext context(EVP_CIPHER_CTX_new());
    int size = 0, last = 0;
    if (EVP_DecryptInit_ex(context.get(), GcmOf(key_.size()), nullptr, Bytes(key_), Bytes(data)) != 1 ||
        EVP_DecryptUpdate(context.get(), nullptr, &size, Bytes(etcd_key),
                          static_cast<int>(etcd_key.size())) != 1 ||
        EVP_DecryptUpdate(context.get(), Bytes(out), &size, Bytes(sealed), static_cast<int>(sealed.size())) !=
            1 ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, tag.data()) != 1) {
      return LibraryFailed();
    }
    if (EVP_DecryptFinal_ex(context.get(), Bytes(out) + size, &last) != 1)
      return Failed("cipher: message authentication failed");
    out.resize(static_cast<size_t>(size + last));
    return Opened{std::move(out), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    std::string out = RandomBytes(kNonce);
    out.resize(kNonce + bytes.size() + kTag);
    CipherContext context(EVP_CIPHER_CTX_new());
    int size = 0, last = 0;
    if (EVP_EncryptInit_ex(context.get(), GcmOf(key_.size()), nullptr, Bytes(key_), Bytes(out)) != 1 ||
        EVP_EncryptUpdate(context.get(), nullptr, &size, Bytes(etcd_key),
                          static_cast<int>(etcd_key.size())) != 1 ||
        EVP_EncryptUpdate(context.get(), Bytes(out) + kNonce, &size, Bytes(bytes),
                          static_cast<int>(bytes.size())) != 1 ||
        EVP_EncryptFinal_ex(context.get(), Bytes(out) + kNonce + size, &last) != 1 ||
        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTag, Bytes(out) + kNonce + bytes.size()) !=
            1) {
      return LibraryFailed();
    }
    return out;
  }

 private:
  const std::string key_;
};

class Secretbox : public Transformer {
 public:
  explicit Secretbox(std::string key) : key_(std::move(key)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view) const override {
    constexpr size_t kNonceSize = crypto_secretbox_NONCEBYTES, kMac = crypto_secretbox_MACBYTES;
    if (data.size() < kNonceSize + kMac) return Failed("the stored data was shorter than the required size");
    std::string_view box = data.substr(kNonceSize);
    std::string out(box.size() - kMac, '\0');
    if (crypto_secretbox_open_easy(Bytes(out), Bytes(box), box.size(), Bytes(data), Bytes(key_)) != 0)
      return Failed("message authentication failed");
    return Opened{std::move(out), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    constexpr size_t kNonceSize = crypto_secretbox_NONCEBYTES;
    std::string out = RandomBytes(kNonceSize);
    out.resize(kNonceSize + crypto_secretbox_MACBYTES + bytes.size());
    crypto_secretbox_easy(Bytes(out) + kNonceSize, Bytes(bytes), bytes.size(), Bytes(out), Bytes(key_));
    return out;
  }

 private:
  const std::string key_;
};

class Identity : public Transformer {
 public:
  Result<Opened> FromStorage(std::string_view data, std::string_view) const override {
    if (data.substr(0, kEncryptedPrefix.size()) == kEncryptedPrefix)
      return Failed("identity transformer tried to read encrypted data");
    return Opened{std::string(data), false};
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    return std::string(bytes);
  }
};

// The first block of HKDF-Expand is as long as a key.
std::string Expand(const std::string& seed, std::string_view info) {
  std::string input(info), out(32, '\0');
  input += '\x01';
  unsigned size = 0;
  HMAC(EVP_sha256(), seed.data(), static_cast<int>(seed.size()), Bytes(std::string_view(input)), input.size(),
       Bytes(out), &size);
  return out;
}

class DerivedAesGcm : public Transformer {
 public:
  explicit DerivedAesGcm(std::string seed) : seed_(std::move(seed)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    if (data.size() < kInfo) return Failed("the stored data was shorter than the required size");
    return AesGcm(Expand(seed_, data.substr(0, kInfo))).FromStorage(data.substr(kInfo), etcd_key);
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    std::string info = RandomBytes(kInfo);
    ASSIGN_OR_RETURN(std::string sealed, AesGcm(Expand(seed_, info)).ToStorage(bytes, etcd_key));
    return info + sealed;
  }

 private:
  const std::string seed_;
};

class PrefixTransformers : public Transformer {
 public:
  PrefixTransformers(std::vector<PrefixTransformer> all, std::string none)
      : all_(std::move(all)), none_(std::move(none)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    std::optional<Error> failed;
    for (const PrefixTransformer& one : all_) {
      if (data.substr(0, one.prefix.size()) != one.prefix) continue;
      Result<Opened> opened = one.transformer->FromStorage(data.substr(one.prefix.size()), etcd_key);
      if (opened) {
        opened->stale = opened->stale || &one != &all_.front();
        return opened;
      }
      // Everything begins with an empty prefix: what a provider with a name says tells more.
      if (one.prefix.empty() && (failed || all_.size() > 1)) continue;
      // Two keys may have one name.
      if (!failed || opened.error().Is(Code::kUnavailable)) failed = opened.error();
    }
    return failed ? *failed : Failed(none_);
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    const PrefixTransformer& first = all_.front();
    ASSIGN_OR_RETURN(std::string out, first.transformer->ToStorage(bytes, etcd_key));
    return first.prefix + out;
  }

 private:
  const std::vector<PrefixTransformer> all_;
  const std::string none_;
};

}  // namespace

std::string RandomBytes(size_t count) {
  std::string out(count, '\0');
  // Without randomness nothing may be encrypted.
  if (RAND_bytes(Bytes(out), static_cast<int>(count)) != 1) std::abort();
  return out;
}

TransformerPtr NewAesCbc(std::string key) { return std::make_shared<AesCbc>(std::move(key)); }
TransformerPtr NewAesGcm(std::string key) { return std::make_shared<AesGcm>(std::move(key)); }
TransformerPtr NewSecretbox(std::string key) { return std::make_shared<Secretbox>(std::move(key)); }
TransformerPtr NewIdentity() { return std::make_shared<Identity>(); }
TransformerPtr NewDerivedAesGcm(std::string seed) { return std::make_shared<DerivedAesGcm>(std::move(seed)); }
TransformerPtr NewPrefixTransformers(std::vector<PrefixTransformer> all, std::string none) {
  return std::make_shared<PrefixTransformers>(std::move(all), std::move(none));
}

}  // namespace keelson::storage
