// Bearer tokens from arbitrary clients.
#include "controlplane/apiserver/authn/static_tokens.h"
#include "controlplane/apiserver/authn/token.h"
#include "lib/base/base64.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

// The input is a token, or, after a bar, header|claims|signature to encode.
void Token(std::string_view input) {
  std::string token(input);
  if (auto bar = input.find('|'); bar != std::string_view::npos) {
    auto second = std::min(input.find('|', bar + 1), input.size());
    token = EncodeBase64(input.substr(0, bar), Base64::kRawUrl) + "." +
            EncodeBase64(input.substr(bar + 1, second - bar - 1), Base64::kRawUrl) + "." +
            EncodeBase64(input.substr(std::min(second + 1, input.size())), Base64::kRawUrl);
  }
  static const crypto::SigningKey key = *crypto::SigningKey::GenerateRsa();
  static apiserver::TokenAuthenticator authenticator(
      {{"https://issuer"}, {key}, {"api"}},
      [](auto...) -> std::optional<apiserver::ObjectIdentity> { return apiserver::ObjectIdentity{}; });
  // The token is not signed, so it is never accepted.
  auto answer = authenticator.Authenticate(token, {"api"});
  FUZZ_CHECK(!answer || !*answer, token);
  auto parsed = apiserver::ParseToken(token);
  if (!parsed) return;
  FUZZ_CHECK(parsed->signed_part.size() < token.size(), token);
  // Parsed claims survive signing and parsing again.
  if (parsed->claims.legacy) return;
  auto again = apiserver::ParseToken(*apiserver::SignToken(parsed->claims, key));
  FUZZ_CHECK(again, token);
  FUZZ_CHECK(again->claims.subject == parsed->claims.subject, token);
  FUZZ_CHECK(again->claims.audiences == parsed->claims.audiences, token);
  FUZZ_CHECK(again->claims.expires == parsed->claims.expires, token);
  FUZZ_CHECK(again->claims.pod.has_value() == parsed->claims.pod.has_value(), token);
}

void TokenFile(std::string_view text) { (void)apiserver::ParseTokenFile(text); }

const Registration kToken("jwt", Token), kFile("token_file", TokenFile);

}  // namespace
}  // namespace keelson::fuzz
