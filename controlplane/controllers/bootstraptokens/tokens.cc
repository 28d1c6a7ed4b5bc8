#include "controlplane/controllers/bootstraptokens/tokens.h"

#include "controlplane/controllers/common/ownership.h"
#include "lib/api/codec/text_forms.h"
#include "lib/base/base64.h"
#include "lib/base/json_quote.h"
#include "lib/base/wall_time.h"
#include "lib/crypto/key_derivation.h"

namespace keelson::controllers {
namespace {

constexpr char kType[] = "bootstrap.kubernetes.io/token";
constexpr char kNamePrefix[] = "bootstrap-token-";

std::string DataOf(const corev1::Secret& secret, const char* key) {
  auto it = secret.data().find(key);
  return it == secret.data().end() ? "" : it->second;
}

}  // namespace

client::Informer<corev1::Secret>& BootstrapTokens(client::InformerFactory& informers) {
  return informers.Get<corev1::Secret>({.field_selector = std::string("type=") + kType}, kTokenNamespace);
}

std::optional<std::chrono::nanoseconds> TokenLifeLeft(const corev1::Secret& secret, WallTime now) {
  const std::string expiration = DataOf(secret, "expiration");
  if (expiration.empty()) return std::nullopt;
  Result<api::Instant> instant = api::ParseTime(expiration, false);
  if (!instant) return std::chrono::nanoseconds(0);
  return WallTimeOf(instant->seconds) - now;
}

std::optional<SigningToken> TokenForSigning(const corev1::Secret& secret, WallTime now) {
  SigningToken token{DataOf(secret, "token-id"), DataOf(secret, "token-secret")};
  if (secret.type() != kType || token.id.empty() || token.secret.empty()) return std::nullopt;
  if (secret.metadata().name() != kNamePrefix + token.id) return std::nullopt;
  if (DataOf(secret, "usage-bootstrap-signing") != "true") return std::nullopt;
  const auto left = TokenLifeLeft(secret, now);
  if (left && *left <= left->zero()) return std::nullopt;
  return token;
}

std::string DetachedSignature(std::string_view content, const SigningToken& token) {
  const std::string header =
      EncodeBase64(R"({"alg":"HS256","kid":)" + JsonQuoted(token.id) + "}", Base64::kRawUrl);
  const std::string signature =
      crypto::HmacSha256(token.secret, header + "." + EncodeBase64(content, Base64::kRawUrl));
  return header + ".." + EncodeBase64(signature, Base64::kRawUrl);
}

}  // namespace keelson::controllers
