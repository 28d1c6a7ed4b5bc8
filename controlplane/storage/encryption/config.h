// The file of --encryption-provider-config: EncryptionConfiguration of apiserver.config.k8s.io/v1.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::storage {

struct EncryptionProvider {
  enum class Type { kAesCbc, kAesGcm, kSecretbox, kIdentity, kKms };
  struct Key {
    std::string name, secret;  // the secret's bytes
  };

  Type type = Type::kIdentity;
  std::vector<Key> keys;
  std::string name, endpoint;  // of a KMS
  std::chrono::milliseconds timeout{3000};
};

struct EncryptionRule {
  std::vector<std::string> resources;  // "secrets", "deployments.apps", "*.apps", "*.", "*.*"
  std::vector<EncryptionProvider> providers;
};

struct EncryptionConfig {
  std::vector<EncryptionRule> rules;
};

// Parses YAML or JSON. An error lists all mistakes, with upstream's texts, and contains no secrets.
Result<EncryptionConfig> ParseEncryptionConfig(std::string_view text);

}  // namespace keelson::storage
