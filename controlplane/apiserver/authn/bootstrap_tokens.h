// Bootstrap tokens (ID.SECRET) for joining nodes, stored as Secrets bootstrap-token-ID in kube-system.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "controlplane/apiserver/authn/token_verifier.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

struct BootstrapSecret {
  std::string type;
  std::map<std::string, std::string> data;
  bool deleted = false;  // has a deletionTimestamp
};
// Returns the Secret of that name in kube-system; nullopt: none.
using BootstrapSecretLookup = std::function<std::optional<BootstrapSecret>(const std::string& name)>;

std::shared_ptr<TokenVerifier> NewBootstrapTokenVerifier(BootstrapSecretLookup lookup,
                                                         std::vector<std::string> api_audiences,
                                                         Clock& clock = Clock::Real());

}  // namespace keelson::apiserver
