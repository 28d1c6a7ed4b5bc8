// Bootstrap tokens (ID.SECRET, with which new nodes join) as Secrets bootstrap-token-ID of kube-system.
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

// The informer of these Secrets alone.
client::Informer<corev1::Secret>& BootstrapTokens(client::InformerFactory& informers);

// How long a token is good still: nullopt, for ever; zero or less, no more. An end that cannot be read has
// come.
std::optional<std::chrono::nanoseconds> TokenLifeLeft(const corev1::Secret& secret, WallTime now);

// The token's ID and secret if it may sign, and its name is that of its ID.
struct SigningToken {
  std::string id, secret;
};
std::optional<SigningToken> TokenForSigning(const corev1::Secret& secret, WallTime now);

// A JSON Web Signature (RFC 7515) of `content` with HS256 whose payload is left out: HEADER..SIGNATURE.
std::string DetachedSignature(std::string_view content, const SigningToken& token);

}  // namespace keelson::controllers
