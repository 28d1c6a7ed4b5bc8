// Converts an object's bytes to and from the value in etcd. Each value starts with a prefix that names its key
// ("k8s:enc:aescbc:v1:key1:"), so that keys can change one object at a time. The format is upstream's: each server
// reads the other's values.
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
  bool stale = false;  // a write would use another key or form now
};

// Authenticated encryption binds a value to `etcd_key`: a value that was moved to another key is refused. Errors
// contain none of the bytes. kUnavailable: a retry may succeed. Thread safe.
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

// The first transformer writes. Each reads values with its prefix; a value that another than the first reads is
// stale. `none`: the error for a value without a known prefix.
TransformerPtr NewPrefixTransformers(std::vector<PrefixTransformer> all, std::string none);

// Keys are 16, 24 or 32 bytes for AES, 32 for secretbox (XSalsa20 and Poly1305).
TransformerPtr NewAesCbc(std::string key);
TransformerPtr NewAesGcm(std::string key);
TransformerPtr NewSecretbox(std::string key);
TransformerPtr NewIdentity();  // no change; refuses values with an encryption prefix
// AES-GCM with a separate key for each value, derived from `seed` by HKDF-SHA256 with 32 random bytes, which are
// stored in front of the value.
TransformerPtr NewDerivedAesGcm(std::string seed);

}  // namespace keelson::storage
