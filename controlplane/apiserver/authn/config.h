// --authentication-config: AuthenticationConfiguration of apiserver.config.k8s.io.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/authn/authenticator.h"
#include "controlplane/apiserver/authn/oidc.h"

namespace keelson::apiserver {

struct AuthenticationConfig {
  std::vector<OidcOptions> jwt;
  std::optional<AnonymousOptions> anonymous;
};
// `taken_issuers`: the issuers of ServiceAccount tokens, which no provider may use.
Result<AuthenticationConfig> ParseAuthenticationConfig(const std::string& text,
                                                       const std::vector<std::string>& taken_issuers);

}  // namespace keelson::apiserver
