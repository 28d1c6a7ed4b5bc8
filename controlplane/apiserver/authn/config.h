// --authentication-config: AuthenticationConfiguration of apiserver.config.k8s.io. Expressions (CEL) are not
// evaluated here: files that have any are refused.
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
// `taken_issuers`: of ServiceAccount tokens, which no provider may have.
Result<AuthenticationConfig> ParseAuthenticationConfig(const std::string& text,
                                                       const std::vector<std::string>& taken_issuers);

}  // namespace keelson::apiserver
