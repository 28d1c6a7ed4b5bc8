// Tokens of an OpenID Connect provider: JWTs verified with the provider's published keys.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/authn/claim_expressions.h"
#include "controlplane/apiserver/authn/token_verifier.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

struct OidcOptions {
  std::string issuer_url;              // https://...; must equal the claim iss
  std::string discovery_url;           // empty: issuer_url/.well-known/openid-configuration
  std::string ca_pem;                  // empty: the system's CAs
  std::vector<std::string> audiences;  // a token must have one of them
  std::vector<std::string> algorithms = {"RS256"};
  std::string username_claim = "sub", username_prefix;
  std::string groups_claim, groups_prefix;  // empty: no groups
  std::string uid_claim;
  std::map<std::string, std::string> required_claims;
  // In CEL, in place of claims or beside them. Never null.
  std::shared_ptr<const ClaimExpressions> expressions = std::make_shared<ClaimExpressions>();
};

// Fetches keys when the first token of the issuer arrives, and again for an unknown key ID, at most every ten
// seconds. While the provider is unreachable, requests do not block repeatedly, and tokens with unknown keys
// are rejected.
Result<std::shared_ptr<TokenVerifier>> NewOidcVerifier(OidcOptions options, Clock& clock = Clock::Real());

}  // namespace keelson::apiserver
