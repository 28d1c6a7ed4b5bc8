// --token-auth-file: CSV lines of token, user name, user UID and optionally quoted groups.
#pragma once

#include <map>
#include <memory>

#include "controlplane/apiserver/authn/token_verifier.h"

namespace keelson::apiserver {

// Tokens by their SHA-256, so that the lookup time reveals nothing about them.
using StaticTokens = std::map<std::string, User, std::less<>>;
Result<StaticTokens> ParseTokenFile(std::string_view text);

std::shared_ptr<TokenVerifier> NewStaticTokenVerifier(StaticTokens tokens,
                                                      std::vector<std::string> api_audiences);

}  // namespace keelson::apiserver
