// Which programs are asked for registries' credentials: CredentialProviderConfig, kubelet.config.k8s.io/v1.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// A token of the pod's ServiceAccount that a provider is given (KEP-4412).
struct TokenAttributes {
  std::string audience;
  bool account_required = false;  // pods without an account: the provider is not run
  // What the provider answers holds for the token alone; else for all pods of the account.
  bool kept_by_token = false;
  // Annotations of the account that it is told; of accounts without a required one it is not asked.
  std::vector<std::string> required_annotations, optional_annotations;
};

struct CredentialProvider {
  std::string name;  // of the program, below the directory of providers
  std::vector<std::string> match_images;
  std::chrono::milliseconds default_cache_duration{0};
  std::string api_version;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::optional<TokenAttributes> token;
};

// kInvalid with everything that is wrong, in upstream's words. `tokens`: providers may be given tokens.
Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml, bool tokens = true);

// As Go writes it: "1h30m".
Result<std::chrono::milliseconds> ParseCacheDuration(const std::string& text);

}  // namespace keelson::kubelet
