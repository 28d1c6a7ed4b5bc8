// Paths that are no resources: /, /version, /metrics, the issuer's documents.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/handlers/context.h"
#include "lib/http/signing_key.h"

namespace keelson::apiserver {

class MiscHandler {
 public:
  struct Options {
    std::string issuer, jwks_url;
    std::vector<http::SigningKey> keys;
    std::vector<std::string> paths;  // that "/" lists
  };
  explicit MiscHandler(Options options);
  // false: none of these paths.
  bool Handle(Context& context) const;

 private:
  std::vector<std::string> paths_;
  std::string version_, configuration_, jwks_;
};

// The Kubernetes version whose API this is.
inline constexpr const char* kGitVersion = "v1.36.2";

}  // namespace keelson::apiserver
