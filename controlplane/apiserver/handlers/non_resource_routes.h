// Small non-resource paths: /, /version, /metrics, and the issuer's discovery documents.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "lib/crypto/signing_key.h"

namespace keelson::apiserver {

class NonResourceRoutes {
 public:
  struct Options {
    std::string issuer, jwks_url;
    std::vector<crypto::SigningKey> keys;
    std::vector<std::string> paths;  // paths listed on "/"
  };
  explicit NonResourceRoutes(Options options);
  // Replaces the published verification keys. Thread safe.
  void SetKeys(std::vector<crypto::SigningKey> keys);
  // Returns false for other paths.
  bool Handle(Context& context) const;

 private:
  // The issuer's discovery documents.
  struct Documents {
    std::string configuration, jwks;
  };
  Options options_;
  std::string version_;
  std::atomic<std::shared_ptr<const Documents>> documents_;
};

}  // namespace keelson::apiserver
