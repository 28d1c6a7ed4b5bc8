// --token-auth-file: lines of token, user name, user uid and, in quotes, groups.
#pragma once

#include <map>
#include <memory>

#include "controlplane/apiserver/authn/token_verifier.h"

namespace keelson::apiserver {

// Tokens by their SHA-256, so that how long a look-up takes says nothing about them.
using StaticTokens = std::map<std::string, User, std::less<>>;
Result<StaticTokens> ParseTokenFile(std::string_view text);

std::shared_ptr<TokenVerifier> NewStaticTokenVerifier(StaticTokens tokens,
                                                      std::vector<std::string> api_audiences);

}  // namespace keelson::apiserver
