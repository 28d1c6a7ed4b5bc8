#include "ctl/token/token.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <set>

#include "ctl/token/discovery.h"
#include "ctl/token/list.h"
#include "lib/base/base64.h"
#include "lib/crypto/certificate_authority.h"
#include "lib/crypto/certificates.h"
#include "lib/crypto/key_derivation.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TokenParts kJoshua{"joshua", "my voice is my passcode"};
constexpr char kContent[] = "Hello from the other side. I must have called a thousand times.";
constexpr char kSignature[] =
    "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";

TEST(Token, HasKubeadmsForm) {
  std::set<std::string> made;
  for (int i = 0; i < 20; ++i) {
    const std::string token = NewToken();
    const auto parts = ParseToken(token);
    ASSERT_TRUE(parts) << token;
    EXPECT_EQ(parts->id + "." + parts->secret, token);
    made.insert(token);
  }
  EXPECT_EQ(made.size(), 20u);
  for (const char* wrong :
       {"", "abcdef", "abcdef.0123456789abcde", "abcdef.0123456789abcdef0", "ABCDEF.0123456789abcdef",
        "abcde.0123456789abcdefg", "abcdef.0123456789abcde\n", "abcdef.0123456789.bcdef"}) {
    EXPECT_FALSE(ParseToken(wrong)) << wrong;
  }
}

TEST(Token, GoesIntoItsSecretAndBack) {
  const WallTime now = WallTime(std::chrono::seconds(1767225600));  // 2026-01-01
  BootstrapToken token;
  token.token = "abcdef.0123456789abcdef";
  token.description = "for tests";
  token.ttl = std::chrono::hours(2);
  token.usages = {"signing", "authentication"};
  token.groups = {"system:bootstrappers:a", "system:bootstrappers:b"};
  const auto secret = TokenSecret(token, now);
  ASSERT_TRUE(secret) << secret.error().message();
  EXPECT_EQ(secret->metadata().name(), "bootstrap-token-abcdef");
  EXPECT_EQ(secret->type(), "bootstrap.kubernetes.io/token");
  EXPECT_EQ(secret->data().at("expiration"), "2026-01-01T02:00:00Z");
  EXPECT_EQ(secret->data().at("usage-bootstrap-signing"), "true");
  EXPECT_EQ(secret->data().at("auth-extra-groups"), "system:bootstrappers:a,system:bootstrappers:b");
  const auto back = TokenOf(*secret);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->token, token.token);
  EXPECT_THAT(back->usages, ElementsAre("authentication", "signing"));
  EXPECT_EQ(back->groups, token.groups);
  EXPECT_EQ(**LifeLeft(*back, now), std::chrono::hours(2));
  EXPECT_EQ(TokenTable({*back}, now),
            "TOKEN                     TTL   EXPIRES                USAGES                   DESCRIPTION   "
            "EXTRA GROUPS\n"
            "abcdef.0123456789abcdef   2h    2026-01-01T02:00:00Z   authentication,signing   for tests     "
            "system:bootstrappers:a,system:bootstrappers:b\n");
  EXPECT_EQ(TokenDocument(*back).at("kind").as_string(), "BootstrapToken");
  token.ttl = std::chrono::seconds(0);
  EXPECT_FALSE(TokenSecret(token, now)->data().contains("expiration")) << "it lives for ever";
  corev1::Secret renamed = *secret;
  renamed.mutable_metadata()->set_name("bootstrap-token-zzzzzz");
  EXPECT_FALSE(TokenOf(renamed));
}

TEST(Signature, IsThatOfTheBootstrapSigner) {
  EXPECT_TRUE(HasSigned(kJoshua, kContent, kSignature));
  EXPECT_FALSE(HasSigned(kJoshua, std::string(kContent) + "!", kSignature));
  EXPECT_FALSE(HasSigned({"joshua", "another"}, kContent, kSignature));
  EXPECT_FALSE(HasSigned({"another", kJoshua.secret}, kContent, kSignature));
  EXPECT_FALSE(HasSigned(kJoshua, kContent, ""));
  EXPECT_FALSE(HasSigned(kJoshua, kContent, std::string(kSignature) + "A"));
}

TEST(Signature, OtherAlgorithmsDoNotCount) {
  const auto signed_with = [](const std::string& header) {
    const std::string encoded = EncodeBase64(header, Base64::kRawUrl);
    const std::string text = encoded + "." + EncodeBase64(kContent, Base64::kRawUrl);
    return encoded + ".." + EncodeBase64(crypto::HmacSha256(kJoshua.secret, text), Base64::kRawUrl);
  };
  EXPECT_TRUE(HasSigned(kJoshua, kContent, signed_with(R"({"alg":"HS256","kid":"joshua"})")));
  EXPECT_FALSE(HasSigned(kJoshua, kContent, signed_with(R"({"alg":"none","kid":"joshua"})")));
  EXPECT_FALSE(HasSigned(kJoshua, kContent, signed_with(R"({"alg":"HS256","kid":"other"})")));
  EXPECT_FALSE(HasSigned(kJoshua, kContent, signed_with("[]")));
  EXPECT_FALSE(
      HasSigned(kJoshua, kContent, EncodeBase64(R"({"alg":"none","kid":"joshua"})", Base64::kRawUrl) + ".."));
}

TEST(Discovery, TrustsOnlyWhatTheTokenHasSigned) {
  corev1::ConfigMap map;
  EXPECT_THAT(VerifiedKubeconfig(map, kJoshua).error().message(), HasSubstr("there is no kubeconfig key"));
  (*map.mutable_data())["kubeconfig"] = kContent;
  EXPECT_THAT(VerifiedKubeconfig(map, kJoshua).error().message(),
              HasSubstr("token id \"joshua\" is invalid for this cluster or it has expired"));
  (*map.mutable_data())["jws-kubeconfig-joshua"] = kSignature;
  EXPECT_EQ(*VerifiedKubeconfig(map, kJoshua), kContent);
  (*map.mutable_data())["kubeconfig"] = "another";
  EXPECT_THAT(VerifiedKubeconfig(map, kJoshua).error().message(),
              HasSubstr("failed to verify JWS signature"));
}

TEST(Discovery, ComparesPinsOfTheKey) {
  const std::string key = *crypto::NewPrivateKey();
  const std::string ca = *crypto::NewAuthorityCertificate(key, "kubernetes", std::chrono::hours(1));
  const std::string pin = *PinOf(ca);
  EXPECT_EQ(pin.size(), 7u + 64);
  EXPECT_TRUE(CheckPins(ca, {pin}));
  EXPECT_TRUE(CheckPins(ca, {"sha256:" + std::string(64, '0'), pin}));
  EXPECT_THAT(CheckPins(ca, {"sha256:" + std::string(64, '0')}).error().message(),
              HasSubstr("none of the public keys"));
  EXPECT_FALSE(CheckPins(ca, {}));
  EXPECT_THAT(CheckPins(ca, {"abc"}).error().message(), HasSubstr("invalid hash"));
  EXPECT_THAT(CheckPins(ca, {"md5:00"}).error().message(), HasSubstr("unknown hash format \"md5\""));
  EXPECT_THAT(CheckPins(ca, {"sha256:00"}).error().message(), HasSubstr("expected a 32 byte SHA-256 hash"));
}

}  // namespace
}  // namespace keelson::ctl
