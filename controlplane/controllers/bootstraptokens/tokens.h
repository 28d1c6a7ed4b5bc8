// Bootstrap tokens (ID.SECRET), which nodes use to join: Secrets bootstrap-token-ID in kube-system.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/client/informer.h"

namespace keelson::controllers {

inline constexpr char kTokenNamespace[] = "kube-system";

// Returns the informer for the bootstrap token Secrets only.
client::Informer<corev1::Secret>& BootstrapTokens(client::InformerFactory& informers);

// Time until the token expires; zero or less: expired; nullopt: no expiration. An expiration that cannot be
// parsed counts as expired.
std::optional<std::chrono::nanoseconds> TokenLifeLeft(const corev1::Secret& secret, WallTime now);

// The ID and secret of a token with usage-bootstrap-signing. Nullopt when the token may not sign or the
// Secret's name does not match its ID.
struct SigningToken {
  std::string id, secret;
};
std::optional<SigningToken> TokenForSigning(const corev1::Secret& secret, WallTime now);

// A detached JSON Web Signature (RFC 7515, HS256) of `content`: HEADER..SIGNATURE without the payload.
std::string DetachedSignature(std::string_view content, const SigningToken& token);

}  // namespace keelson::controllers
