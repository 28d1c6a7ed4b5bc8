#include "controlplane/apiserver/authn/token.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/authn/authenticator.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kIssuer = "https://kubernetes.default.svc.cluster.local";

class TokenTest : public testing::Test {
 protected:
  TokenTest() : key_(*http::SigningKey::GenerateRsa()) {
    objects_["serviceaccounts/ns1/builder"] = {"sa-uid", std::nullopt};
    objects_["pods/ns1/web"] = {"pod-uid", std::nullopt};
    tokens_ = std::make_shared<TokenAuthenticator>(
        TokenAuthenticator::Options{{kIssuer}, {key_}, {kIssuer}},
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
    auto answer = tokens_->Authenticate(token);
    return answer ? (*answer ? "accepted" : "not ours") : answer.error().message();
  }

  FakeClock clock_;
  http::SigningKey key_;
  std::map<std::string, ObjectIdentity> objects_;
  std::shared_ptr<TokenAuthenticator> tokens_;
};

TEST_F(TokenTest, GoodTokenIsTheServiceAccount) {
  auto answer = tokens_->Authenticate(Sign(Claims()));
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
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Refusal(token), "service account token has expired");
}

TEST_F(TokenTest, ForgeriesAreRefused) {
  std::string token = Sign(Claims());
  std::string other = *SignToken(Claims(), *http::SigningKey::GenerateRsa());
  EXPECT_EQ(Refusal(other), "invalid signature");
  auto first = token.find('.');
  std::string none =
      http::Base64UrlEncode(R"({"alg":"none"})") + token.substr(first, token.rfind('.') - first) + ".";
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
  for (const char* junk : {"", "a.b", "a.b.c", "a.b.c.d", "...."})
    EXPECT_EQ(Refusal(junk), "not ours") << junk;
}

TEST_F(TokenTest, Authenticator) {
  auto users = Authenticator::ParseTokenFile("s3cret,alice,42,\"dev,ops\"\n# comment\n\nother,bob,7\n");
  ASSERT_TRUE(users);
  Authenticator authenticator(*users, tokens_);
  http::ServerRequest request;
  EXPECT_EQ(authenticator.Authenticate(request)->name, "system:anonymous");
  request.headers.Set("Authorization", "Bearer s3cret");
  Result<User> alice = authenticator.Authenticate(request);
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->groups, (std::vector<std::string>{"dev", "ops", "system:authenticated"}));
  request.headers.Set("Authorization", "Bearer wrong");
  Result<User> nobody = authenticator.Authenticate(request);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().message(), "Unauthorized");
  request.headers.Set("Authorization", "bearer " + Sign(Claims()));
  EXPECT_EQ(authenticator.Authenticate(request)->name, "system:serviceaccount:ns1:builder");
  request.peer.emplace();
  request.peer->common_name = "kubernetes-admin";
  request.peer->organizations = {"system:masters"};
  Result<User> admin = authenticator.Authenticate(request);
  EXPECT_EQ(admin->name, "kubernetes-admin");
  EXPECT_TRUE(admin->InGroup("system:masters"));
  EXPECT_FALSE(Authenticator::ParseTokenFile("only-a-token"));
}

}  // namespace
}  // namespace keelson::apiserver
