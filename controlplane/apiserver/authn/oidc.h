// Tokens of an OpenID Connect provider: JWTs whose keys the provider publishes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/authn/token_verifier.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

struct OidcOptions {
  std::string issuer_url;              // https://...; also the claim iss
  std::string discovery_url;           // empty: issuer_url/.well-known/openid-configuration
  std::string ca_pem;                  // empty: the system's CAs
  std::vector<std::string> audiences;  // a token has to name one of them
  std::vector<std::string> algorithms = {"RS256"};
  std::string username_claim = "sub", username_prefix;
  std::string groups_claim, groups_prefix;  // no claim: no groups
  std::string uid_claim;
  std::map<std::string, std::string> required_claims;
};

// Keys are fetched when a token of the issuer first comes, and again when one names a key that is not
// known, but not more often than every ten seconds. While the provider is away nobody waits for it twice,
// and nobody is let in by a key that is not known.
Result<std::shared_ptr<TokenVerifier>> NewOidcVerifier(OidcOptions options, Clock& clock = Clock::Real());

}  // namespace keelson::apiserver
