#include "lib/crypto/signing_key.h"

#include <gtest/gtest.h>

namespace keelson::crypto {
namespace {

// P-256, made by `openssl ecparam -name prime256v1 -genkey`.
constexpr std::string_view kEcKey = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIBKjLuxFjxMqvGvu+ck8UlOJ1H8JP721aeqb4M6OHFG4oAoGCCqGSM49
AwEHoUQDQgAE0298J55jmEbxVkAlXxk76G8lFpawVCr756fZQvM8N0nYLrFlSJJH
BRMGGW3x8M+1R9X82tRJRYHCi7VkzOpfsg==
-----END EC PRIVATE KEY-----
)";

TEST(SigningKey, SignsAndVerifies) {
  Result<SigningKey> rsa = SigningKey::GenerateRsa();
  ASSERT_TRUE(rsa);
  Result<std::vector<SigningKey>> ec = SigningKey::FromPem(kEcKey);
  ASSERT_TRUE(ec) << ec.error().message();
  EXPECT_EQ(rsa->algorithm(), "RS256");
  EXPECT_EQ(ec->front().algorithm(), "ES256");
  for (const SigningKey& key : {*rsa, ec->front()}) {
    Result<std::string> signature = key.Sign("header.payload");
    ASSERT_TRUE(signature);
    EXPECT_TRUE(key.Verify("header.payload", *signature));
    EXPECT_FALSE(key.Verify("header.payloae", *signature));
    std::string broken = *signature;
    broken[10] = static_cast<char>(broken[10] ^ 1);
    EXPECT_FALSE(key.Verify("header.payload", broken));
    EXPECT_FALSE(key.Verify("header.payload", ""));
  }
  Result<std::string> signature = ec->front().Sign("x");
  EXPECT_EQ(signature->size(), 64u);  // r and s side by side
  EXPECT_FALSE(rsa->Verify("x", *signature));
}

TEST(SigningKey, IdIsOfThePublicKey) {
  Result<SigningKey> key = SigningKey::GenerateRsa();
  Result<std::string> pem = key->PrivatePem();
  ASSERT_TRUE(pem);
  Result<std::vector<SigningKey>> again = SigningKey::FromPem(*pem);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->front().id(), key->id());
  EXPECT_TRUE(again->front().is_private());
}

TEST(SigningKey, RefusesWhatIsNoKey) {
  EXPECT_FALSE(SigningKey::FromPem(""));
  EXPECT_FALSE(SigningKey::FromPem("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"));
}

}  // namespace
}  // namespace keelson::crypto
