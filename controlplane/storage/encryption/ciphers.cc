#include <sodium.h>

#include <optional>

#include "controlplane/storage/encryption/transformer.h"
#include "lib/crypto/cipher.h"
#include "lib/crypto/key_derivation.h"
#include "lib/crypto/random.h"

namespace keelson::storage {
namespace {

constexpr size_t kBlock = crypto::kAesBlock, kInfo = 32;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

Error Failed(std::string what) { return Error(Code::kInternal, std::move(what)); }
Error Failed(const Error& error) { return Failed(error.message()); }

// IV, then the blocks, padded as PKCS #7 has it.
class AesCbc : public Transformer {
 public:
  explicit AesCbc(std::string key) : key_(std::move(key)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view) const override {
    if (data.size() < kBlock) return Failed("the stored data was shorter than the required size");
    std::string_view blocks = data.substr(kBlock);
    if (blocks.size() % kBlock != 0) return Failed("the stored data is not a multiple of the block size");
    if (blocks.empty()) return Failed("invalid padding on input");
    Result<std::string> plain = crypto::DecryptAesCbc(key_, data.substr(0, kBlock), blocks);
    if (!plain) return Failed(plain.error());
    return Opened{std::move(*plain), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    const std::string vector = crypto::RandomBytes(kBlock);
    std::string out = vector;
    KEELSON_RETURN_IF_ERROR(crypto::EncryptAesCbc(key_, vector, bytes, out));
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
    constexpr size_t kLeast = crypto::kGcmNonce + crypto::kGcmTag;
    if (data.size() < kLeast) return Failed("the stored data was shorter than the required size");
    Result<std::string> plain = crypto::DecryptAesGcm(key_, data.substr(0, crypto::kGcmNonce),
                                                      data.substr(crypto::kGcmNonce), etcd_key);
    if (!plain) return Failed(plain.error());
    return Opened{std::move(*plain), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    const std::string nonce = crypto::RandomBytes(crypto::kGcmNonce);
    std::string out = nonce;
    KEELSON_RETURN_IF_ERROR(crypto::EncryptAesGcm(key_, nonce, bytes, etcd_key, out));
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
    if (crypto_secretbox_open_easy(Bytes(out), Bytes(box), box.size(), Bytes(data), Bytes(key_)) != 0) {
      return Failed("message authentication failed");
    }
    return Opened{std::move(out), false};
  }

  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    constexpr size_t kNonceSize = crypto_secretbox_NONCEBYTES;
    std::string out = crypto::RandomBytes(kNonceSize);
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
    if (data.substr(0, kEncryptedPrefix.size()) == kEncryptedPrefix) {
      return Failed("identity transformer tried to read encrypted data");
    }
    return Opened{std::string(data), false};
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view) const override {
    return std::string(bytes);
  }
};

// The first block of HKDF-Expand is as long as a key.
std::string Expand(const std::string& seed, std::string_view info) {
  return crypto::HmacSha256(seed, std::string(info) + '\x01');
}

class DerivedAesGcm : public Transformer {
 public:
  explicit DerivedAesGcm(std::string seed) : seed_(std::move(seed)) {}

  Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const override {
    if (data.size() < kInfo) return Failed("the stored data was shorter than the required size");
    return AesGcm(Expand(seed_, data.substr(0, kInfo))).FromStorage(data.substr(kInfo), etcd_key);
  }
  Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const override {
    std::string info = crypto::RandomBytes(kInfo);
    KEELSON_ASSIGN_OR_RETURN(std::string sealed, AesGcm(Expand(seed_, info)).ToStorage(bytes, etcd_key));
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
    KEELSON_ASSIGN_OR_RETURN(std::string out, first.transformer->ToStorage(bytes, etcd_key));
    return first.prefix + out;
  }

 private:
  const std::vector<PrefixTransformer> all_;
  const std::string none_;
};

}  // namespace

TransformerPtr NewAesCbc(std::string key) { return std::make_shared<AesCbc>(std::move(key)); }
TransformerPtr NewAesGcm(std::string key) { return std::make_shared<AesGcm>(std::move(key)); }
TransformerPtr NewSecretbox(std::string key) { return std::make_shared<Secretbox>(std::move(key)); }
TransformerPtr NewIdentity() { return std::make_shared<Identity>(); }
TransformerPtr NewDerivedAesGcm(std::string seed) { return std::make_shared<DerivedAesGcm>(std::move(seed)); }
TransformerPtr NewPrefixTransformers(std::vector<PrefixTransformer> all, std::string none) {
  return std::make_shared<PrefixTransformers>(std::move(all), std::move(none));
}

}  // namespace keelson::storage
