// Bootstrap tokens, ID.SECRET: Secrets bootstrap-token-ID in kube-system, which let nodes join.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::ctl {

struct TokenParts {
  std::string id, secret;
};
// kInvalid for what is not [a-z0-9]{6}.[a-z0-9]{16}.
Result<TokenParts> ParseToken(std::string_view token);
bool IsTokenId(std::string_view text);
std::string NewToken();  // random

std::string TokenSecretName(std::string_view id);
// The Secret of the token, which has a value; `now` and its ttl make the expiration.
Result<corev1::Secret> TokenSecret(const BootstrapToken& token, WallTime now);
// The token that a Secret holds. `ttl` is unset; `expires` is as stored. kInvalid: it holds none.
Result<BootstrapToken> TokenOf(const corev1::Secret& secret);
// Until it expires, zero or less when it has; nullopt: it never does. kInvalid: no time can be read.
Result<std::optional<std::chrono::seconds>> LifeLeft(const BootstrapToken& token, WallTime now);

// Whether `signature` is a detached JSON Web Signature (RFC 7515, appendix F; HS256) of `content` by the token, as the
// controller bootstrapsigner makes it.
bool HasSigned(const TokenParts& token, std::string_view content, std::string_view signature);

}  // namespace keelson::ctl
