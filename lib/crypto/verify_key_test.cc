#include "lib/crypto/verify_key.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/base/base64.h"
#include "lib/crypto/signing_key.h"

namespace keelson::crypto {
namespace {

std::function<std::string(std::string_view)> Member(const SigningKey& key) {
  return [members = key.Jwk()](std::string_view name) -> std::string {
    for (const auto& member : members) {
      if (member.first == name) return member.second;
    }
    return "";
  };
}

TEST(VerifyKey, VerifiesWhatTheKeySigned) {
  SigningKey key = *SigningKey::GenerateRsa();
  auto verify = VerifyKey::FromJwk(Member(key));
  ASSERT_TRUE(verify) << verify.error().message();
  std::string signature = *key.Sign("text");
  EXPECT_TRUE(verify->Verify("RS256", "text", signature));
  EXPECT_FALSE(verify->Verify("RS256", "texts", signature));
  for (const char* other : {"RS384", "PS256", "ES256", "HS256", "none", ""}) {
    EXPECT_FALSE(verify->Verify(other, "text", signature)) << other;
  }
}

TEST(VerifyKey, RefusesWhatIsNoPublicKey) {
  using Members = std::map<std::string, std::string, std::less<>>;
  const std::string coordinate = EncodeBase64(std::string(32, 'x'), Base64::kRawUrl);
  for (const Members& members :
       {Members{}, Members{{"kty", "oct"}, {"k", "AAAA"}},
        Members{{"kty", "RSA"}, {"n", "AQAB"}, {"e", "AQAB"}},
        Members{{"kty", "EC"}, {"crv", "P-256"}, {"x", coordinate}, {"y", coordinate}},
        Members{{"kty", "EC"}, {"crv", "secp256k1"}, {"x", coordinate}, {"y", coordinate}}}) {
    EXPECT_FALSE(VerifyKey::FromJwk([&](std::string_view name) {
      auto it = members.find(name);
      return it == members.end() ? "" : it->second;
    }));
  }
}

}  // namespace
}  // namespace keelson::crypto
