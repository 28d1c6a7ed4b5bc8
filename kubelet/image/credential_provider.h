// Programs of a cloud that know its registries' credentials (KEP-2133). One is run when an image is pulled
// that one of its patterns covers; what it answers is kept for as long as it says.
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
  // `tokens`: providers may be given tokens of ServiceAccounts.
  static Result<std::shared_ptr<CredentialProviders>> Load(const std::string& config_file,
                                                           const std::string& bin_dir, bool tokens = true,
                                                           Clock& clock = Clock::Real());
  CredentialProviders(std::vector<CredentialProvider> providers, std::string bin_dir, Clock& clock)
      : providers_(std::move(providers)), bin_dir_(std::move(bin_dir)), clock_(clock) {}

  // Of a (normalized) image for a pod. A provider that fails is logged, and has none.
  std::vector<Credential> Get(const std::string& image, const corev1::Pod& pod, const AccountSource& accounts,
                              std::stop_token stop);
  // Those of them that are the pod's ServiceAccount's own.
  std::vector<Credential> GetOfAccount(const std::string& image, const corev1::Pod& pod,
                                       const AccountSource& accounts, std::stop_token stop);

 private:
  struct Answer {
    std::map<std::string, cri::AuthConfig> auth;  // by pattern
    WallTime expires;
  };
  // What this provider gives for the image; nullopt: nothing.
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
  // "<provider> <image, registry or nothing> <account>"
  std::map<std::string, Answer> cache_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
