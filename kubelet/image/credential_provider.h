// Credential provider plugins (KEP-2133): programs that know the credentials of registries. One is run when an image
// matches its patterns; its answer is cached for as long as it says.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/image/credential_config.h"
#include "kubelet/image/keyring.h"
#include "kubelet/image/pod_account.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

class CredentialProviders {  // thread safe
 public:
  // Reads the configuration. `tokens`: as ParseCredentialProviders. Errors as there.
  static Result<std::shared_ptr<CredentialProviders>> Load(const std::string& config_file,
                                                           const std::string& bin_dir, bool tokens = true,
                                                           Clock& clock = Clock::Real());
  CredentialProviders(std::vector<CredentialProvider> providers, std::string bin_dir, Clock& clock)
      : providers_(std::move(providers)), bin_dir_(std::move(bin_dir)), clock_(clock) {}

  // Credentials for a normalized image and a pod. Runs providers, so it may block. Failures are logged.
  std::vector<Credential> Get(const std::string& image, const corev1::Pod& pod, const AccountSource& accounts,
                              std::stop_token stop);
  // Only those that belong to the pod's ServiceAccount.
  std::vector<Credential> GetOfAccount(const std::string& image, const corev1::Pod& pod,
                                       const AccountSource& accounts, std::stop_token stop);

 private:
  struct Answer {
    std::map<std::string, cri::AuthConfig> auth;  // by pattern
    WallTime expires;
  };
  // The provider's answer, perhaps cached; nullopt: none.
  std::optional<Answer> AnswerOf(const CredentialProvider& provider, const std::string& image,
                                 const PodAccount& account, std::stop_token stop);
  Result<Answer> Ask(const CredentialProvider& provider, const std::string& image, const PodAccount& account,
                     std::string& scope, std::stop_token stop);
  std::vector<Credential> Collect(const std::string& image, const corev1::Pod& pod,
                                  const AccountSource& accounts, bool of_account_only, std::stop_token stop);

  const std::vector<CredentialProvider> providers_;
  const std::string bin_dir_;
  Clock& clock_;
  Mutex mutex_;
  // By "<provider> <image, registry or nothing> <account>".
  std::map<std::string, Answer> cache_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
