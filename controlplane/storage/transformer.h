// Between an object's bytes and what etcd holds of them. Each value begins with the name of what it was
// encrypted with ("k8s:enc:aescbc:v1:key1:"), so that keys can be changed one object at a time. The bytes are
// those of upstream: either server reads what the other has written.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::storage {

inline constexpr std::string_view kEncryptedPrefix = "k8s:enc:";

struct Opened {
  std::string bytes;
  bool stale = false;  // written otherwise than it would be now
};

// `etcd_key` is what authenticated encryption binds a value to: a value moved to another key is refused.
// Errors never hold any of the bytes. kUnavailable: another try may succeed. Thread safe.
class Transformer {
 public:
  virtual ~Transformer() = default;
  virtual Result<Opened> FromStorage(std::string_view data, std::string_view etcd_key) const = 0;
  virtual Result<std::string> ToStorage(std::string_view bytes, std::string_view etcd_key) const = 0;
};
using TransformerPtr = std::shared_ptr<const Transformer>;

struct PrefixTransformer {
  std::string prefix;
  TransformerPtr transformer;
};

// The first writes; each reads what has its prefix, and what another than the first has read is stale.
// `none`: the error when no prefix fits.
TransformerPtr NewPrefixTransformers(std::vector<PrefixTransformer> all, std::string none);

// Keys are 16, 24 or 32 bytes for AES, 32 for secretbox (XSalsa20 and Poly1305).
TransformerPtr NewAesCbc(std::string key);
TransformerPtr NewAesGcm(std::string key);
TransformerPtr NewSecretbox(std::string key);
TransformerPtr NewIdentity();  // as it is; refuses what looks encrypted
// AES-GCM with a key of its own for each value, derived from `seed` by HKDF-SHA256 and 32 random bytes that
// stand before the value.
TransformerPtr NewDerivedAesGcm(std::string seed);

}  // namespace keelson::storage
