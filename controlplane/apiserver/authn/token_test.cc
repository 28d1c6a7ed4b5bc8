#include "controlplane/apiserver/authn/token.h"

#include <gtest/gtest.h>

#include "lib/base/base64.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kIssuer = "https://kubernetes.default.svc.cluster.local";

class TokenTest : public testing::Test {
 protected:
  TokenTest() : key_(*crypto::SigningKey::GenerateRsa()) {
    objects_["serviceaccounts/ns1/builder"] = {"sa-uid", std::nullopt};
    objects_["pods/ns1/web"] = {"pod-uid", std::nullopt};
    tokens_ = std::make_shared<TokenAuthenticator>(
        TokenAuthenticator::Options{
            {kIssuer},
            {key_},
            {kIssuer},
            true,
            [this](const std::string& ns, const std::string& secret, const std::string& date) {
              used_.push_back(ns + "/" + secret + " " + date);
            }},
        [this](std::string_view resource, std::string_view ns,
               std::string_view name) -> std::optional<ObjectIdentity> {
          auto it = objects_.find(std::string(resource) + "/" + std::string(ns) + "/" + std::string(name));
          if (it == objects_.end()) return std::nullopt;
          return it->second;
        },
        clock_);
  }

  TokenClaims Claims() {
    int64_t now = std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
    TokenClaims claims;
    claims.issuer = kIssuer;
    claims.subject = "system:serviceaccount:ns1:builder";
    claims.id = "id-1";
    claims.audiences = {kIssuer};
    claims.issued_at = claims.not_before = now;
    claims.expires = now + 3600;
    claims.ns = "ns1";
    claims.service_account = {"builder", "sa-uid"};
    claims.pod = TokenClaims::Object{"web", "pod-uid"};
    claims.node = TokenClaims::Object{"n1", "node-uid"};
    return claims;
  }
  std::string Sign(const TokenClaims& claims) { return *SignToken(claims, key_); }
  std::string Refusal(const std::string& token) {
    auto answer = tokens_->Authenticate(token, {kIssuer});
    return answer ? (*answer ? "accepted" : "not ours") : answer.error().message();
  }

  FakeClock clock_;
  crypto::SigningKey key_;
  std::map<std::string, ObjectIdentity> objects_;
  std::vector<std::string> used_;
  std::shared_ptr<TokenAuthenticator> tokens_;
};

TEST_F(TokenTest, GoodTokenIsTheServiceAccount) {
  auto answer = tokens_->Authenticate(Sign(Claims()), {kIssuer});
  ASSERT_TRUE(answer) << answer.error().message();
  ASSERT_TRUE(*answer);
  const User& user = (*answer)->user;
  EXPECT_EQ(user.name, "system:serviceaccount:ns1:builder");
  EXPECT_EQ(user.uid, "sa-uid");
  EXPECT_EQ(user.groups, (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:ns1"}));
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/pod-name"), std::vector<std::string>{"web"});
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/node-name"), std::vector<std::string>{"n1"});
  EXPECT_EQ(user.extra.at("authentication.kubernetes.io/credential-id"),
            std::vector<std::string>{"JTI=id-1"});
}

TEST_F(TokenTest, ClaimsSurviveTheRoundTrip) {
  std::string token = Sign(Claims());
  auto parsed = ParseToken(token);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->algorithm, "RS256");
  EXPECT_EQ(parsed->key_id, key_.id());
  EXPECT_EQ(parsed->claims.expires, Claims().expires);
  EXPECT_EQ(parsed->claims.audiences, Claims().audiences);
  EXPECT_EQ(parsed->claims.pod->uid, "pod-uid");
}

TEST_F(TokenTest, TimeAndObjectsAreCheckedEachTime) {
  std::string token = Sign(Claims());
  EXPECT_EQ(Refusal(token), "accepted");
  clock_.Advance(std::chrono::seconds(3599));
  EXPECT_EQ(Refusal(token), "accepted");
  objects_["pods/ns1/web"].uid = "another";
  EXPECT_EQ(Refusal(token), "pod UID (another) does not match claim (pod-uid)");
  objects_.erase("pods/ns1/web");
  EXPECT_EQ(Refusal(token), "pod has been deleted");
  objects_["pods/ns1/web"] = {"pod-uid", clock_.Now() - std::chrono::seconds(61)};
  EXPECT_EQ(Refusal(token), "pod has been deleted");
  objects_["pods/ns1/web"] = {"pod-uid", clock_.Now() - std::chrono::seconds(59)};
  EXPECT_EQ(Refusal(token), "accepted");
  clock_.Advance(std::chrono::seconds(60));  // clocks may differ by a minute
  objects_["pods/ns1/web"] = {"pod-uid", std::nullopt};
  EXPECT_EQ(Refusal(token), "accepted");
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Refusal(token), "service account token has expired");
  TokenClaims early = Claims();
  early.not_before += 61;
  EXPECT_EQ(Refusal(Sign(early)), "service account token is not valid yet");
}

TEST_F(TokenTest, ForgeriesAreRefused) {
  std::string token = Sign(Claims());
  std::string other = *SignToken(Claims(), *crypto::SigningKey::GenerateRsa());
  EXPECT_EQ(Refusal(other), "invalid signature");
  auto first = token.find('.');
  std::string none = EncodeBase64(R"({"alg":"none"})", Base64::kRawUrl) +
                     token.substr(first, token.rfind('.') - first) + ".";
  EXPECT_EQ(Refusal(none), "invalid signature");
  TokenClaims claims = Claims();
  claims.subject = "system:serviceaccount:kube-system:admin";
  EXPECT_EQ(Refusal(Sign(claims)), "token subject does not match its service account");
  claims = Claims();
  claims.audiences = {"vault"};
  EXPECT_EQ(Refusal(Sign(claims)), "token audiences do not include this server");
  EXPECT_TRUE(*tokens_->Authenticate(Sign(claims), {"vault", "other"}));
  claims = Claims();
  claims.issuer = "https://elsewhere";
  EXPECT_EQ(Refusal(Sign(claims)), "not ours");
  for (const char* junk : {"", "a.b", "a.b.c", "a.b.c.d", "...."}) {
    EXPECT_EQ(Refusal(junk), "not ours") << junk;
  }
}

TEST_F(TokenTest, KeysRotateAndIssuersAreSeveral) {
  crypto::SigningKey old_key = *crypto::SigningKey::GenerateRsa();
  TokenAuthenticator both(
      {{"https://new", kIssuer}, {key_, old_key}, {kIssuer}},
      [](auto...) -> std::optional<ObjectIdentity> {
        return ObjectIdentity{"sa-uid", {}};
      },
      clock_);
  TokenClaims claims = Claims();
  claims.pod.reset();
  claims.node.reset();
  for (const char* issuer : {"https://new", kIssuer}) {
    claims.issuer = issuer;
    for (const crypto::SigningKey& key : {key_, old_key}) {
      auto answer = both.Authenticate(*SignToken(claims, key), {kIssuer});
      EXPECT_TRUE(answer && *answer) << issuer;
    }
  }
}

TEST_F(TokenTest, NodeAndSecretBoundTokensEndWithTheirObject) {
  objects_["nodes//n1"] = {"node-uid", std::nullopt};
  objects_["secrets/ns1/holder"] = {"secret-uid", std::nullopt};
  TokenClaims claims = Claims();
  claims.pod.reset();
  std::string of_node = Sign(claims);
  EXPECT_EQ(Refusal(of_node), "accepted");
  objects_["nodes//n1"].uid = "another";
  EXPECT_EQ(Refusal(of_node), "node UID (another) does not match claim (node-uid)");
  claims.node.reset();
  claims.secret = TokenClaims::Object{"holder", "secret-uid"};
  std::string of_secret = Sign(claims);
  EXPECT_EQ(Refusal(of_secret), "accepted");
  objects_.erase("secrets/ns1/holder");
  EXPECT_EQ(Refusal(of_secret), "secret has been deleted");
}

TEST_F(TokenTest, LegacyTokensLiveInTheirSecret) {
  auto encode = [](const char* text) { return EncodeBase64(text, Base64::kRawUrl); };
  std::string token = encode(R"({"alg":"RS256"})") + "." + encode(R"({"iss":"kubernetes/serviceaccount",
    "sub":"system:serviceaccount:ns1:builder","kubernetes.io/serviceaccount/namespace":"ns1",
    "kubernetes.io/serviceaccount/secret.name":"old","kubernetes.io/serviceaccount/service-account.name":"builder",
    "kubernetes.io/serviceaccount/service-account.uid":"sa-uid"})");
  token += "." + EncodeBase64(*key_.Sign(token), Base64::kRawUrl);
  EXPECT_EQ(Refusal(token), "secret has been deleted");
  objects_["secrets/ns1/old"] = {"any", std::nullopt, token};
  EXPECT_EQ(Refusal(token), "accepted");
  objects_["secrets/ns1/old"].token_invalid = true;
  EXPECT_EQ(
      Refusal(token),
      "the token in secret ns1/old for service account ns1/builder has been marked invalid. Use tokens from "
      "the TokenRequest API or manually created secret-based tokens, or remove the "
      "'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this "
      "token");
  // Each use of a day that is not written down yet, refused or not.
  const std::string today = DateOf(clock_.Now());
  EXPECT_EQ(used_, (std::vector<std::string>{"ns1/old " + today, "ns1/old " + today}));
  for (const std::string& date : {today, DateOf(clock_.Now() + std::chrono::hours(24))}) {
    objects_["secrets/ns1/old"].last_used = date;
    (void)Refusal(token);
  }
  EXPECT_EQ(used_.size(), 2u);
  objects_["secrets/ns1/old"] = {"any", std::nullopt, token + "x"};
  EXPECT_EQ(Refusal(token), "token does not match its secret");
  EXPECT_FALSE(tokens_->Authenticate(token, {"vault"}));
}

}  // namespace
}  // namespace keelson::apiserver
