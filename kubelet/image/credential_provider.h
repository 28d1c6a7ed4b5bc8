// Programs of a cloud that know its registries' credentials (CredentialProviderConfig,
// kubelet.config.k8s.io/v1; KEP-2133). One is run when an image is pulled that one of its patterns covers;
// what it answers is kept for as long as it says.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/image/keyring.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct CredentialProvider {
  std::string name;  // of the program, below the directory of providers
  std::vector<std::string> match_images;
  std::chrono::milliseconds default_cache_duration{0};
  std::string api_version;
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;
};

// kInvalid with everything that is wrong, in upstream's words.
Result<std::vector<CredentialProvider>> ParseCredentialProviders(const std::string& yaml);

class CredentialProviders {  // thread safe
 public:
  static Result<std::shared_ptr<CredentialProviders>> Load(const std::string& config_file,
                                                           const std::string& bin_dir,
                                                           Clock& clock = Clock::Real());
  CredentialProviders(std::vector<CredentialProvider> providers, std::string bin_dir, Clock& clock)
      : providers_(std::move(providers)), bin_dir_(std::move(bin_dir)), clock_(clock) {}

  // Of a (normalized) image. A provider that fails is logged, and has none.
  std::vector<Credential> Get(const std::string& image, std::stop_token stop);

 private:
  struct Answer {
    std::map<std::string, cri::AuthConfig> auth;  // by pattern
    WallTime expires;
  };
  Result<Answer> Ask(const CredentialProvider& provider, const std::string& image, std::string& key,
                     std::stop_token stop);
  const Answer* Cached(const CredentialProvider& provider, const std::string& image) REQUIRES(mutex_);

  const std::vector<CredentialProvider> providers_;
  const std::string bin_dir_;
  Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Answer> cache_ GUARDED_BY(mutex_);  // "<provider> <image, registry or nothing>"
};

}  // namespace keelson::kubelet
