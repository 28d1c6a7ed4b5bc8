// The configuration of credential provider plugins: CredentialProviderConfig, kubelet.config.k8s.io/v1.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

// tokenAttributes: the provider gets a token of the pod's ServiceAccount (KEP-4412).
struct TokenAttributes {
  std::string audience;
  bool account_required = false;  // the provider is not run for pods without an account
  // Cache answers per token; false: per ServiceAccount.
  bool kept_by_token = false;
  // Annotations of the account that the provider gets; it is not run if a required one is missing.
  std::vector<std::string> required_annotations, optional_annotations;
};

struct CredentialProvider {
  std::string name;  // of the program in the provider directory
  std::vector<std::string> match_images;
  std::chrono::milliseconds default_cache_duration{0};
  std::string api_version;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
  std::optional<TokenAttributes> token;
};

// kBadRequest for what is no such document; kInvalid, with all mistakes and upstream's messages. `tokens`: tokenAttributes are allowed.
Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml, bool tokens = true);

// A Go duration: "1h30m".
Result<std::chrono::milliseconds> ParseCacheDuration(const std::string& text);

}  // namespace keelson::kubelet
