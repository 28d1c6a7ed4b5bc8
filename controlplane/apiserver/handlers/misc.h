// Paths that are no resources: /, /version, /metrics, the issuer's documents.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/endpoints/context.h"
#include "lib/crypto/signing_key.h"

namespace keelson::apiserver {

class MiscHandler {
 public:
  struct Options {
    std::string issuer, jwks_url;
    std::vector<http::SigningKey> keys;
    std::vector<std::string> paths;  // that "/" lists
  };
  explicit MiscHandler(Options options);
  // The keys that tokens are verified with from now on.
  void SetKeys(std::vector<http::SigningKey> keys);
  // false: none of these paths.
  bool Handle(Context& context) const;

 private:
  // What is told of the issuer.
  struct Documents {
    std::string configuration, jwks;
  };
  Options options_;
  std::string version_;
  std::atomic<std::shared_ptr<const Documents>> documents_;
};

}  // namespace keelson::apiserver
