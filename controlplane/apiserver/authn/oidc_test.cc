#include "controlplane/apiserver/authn/oidc.h"

#include <gtest/gtest.h>

#include <atomic>

#include <boost/json.hpp>

#include "controlplane/apiserver/authn/config.h"
#include "controlplane/apiserver/testing/https_service.h"
#include "lib/base/base64.h"
#include "lib/crypto/signing_key.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
const std::vector<std::string> kAudiences = {"api"};

// P-256, made by `openssl ecparam -name prime256v1 -genkey`.
constexpr std::string_view kEcKey = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIBKjLuxFjxMqvGvu+ck8UlOJ1H8JP721aeqb4M6OHFG4oAoGCCqGSM49
AwEHoUQDQgAE0298J55jmEbxVkAlXxk76G8lFpawVCr756fZQvM8N0nYLrFlSJJH
BRMGGW3x8M+1R9X82tRJRYHCi7VkzOpfsg==
-----END EC PRIVATE KEY-----
)";

class OidcTest : public testing::Test {
 protected:
  OidcTest()
      : rsa_(*crypto::SigningKey::GenerateRsa()),
        ec_(crypto::SigningKey::FromPem(kEcKey)->front()),
        issuer_([this](const http::ServerRequest& request) { return Answer(request); }) {
    keys_ = {rsa_};
    options_.issuer_url = issuer_.url();
    options_.ca_pem = issuer_.ca_pem();
    options_.audiences = {"cluster"};
    options_.groups_claim = "groups";
    options_.groups_prefix = "corp:";
    options_.username_prefix = "corp:";
  }

  HttpsService::Answer Answer(const http::ServerRequest& request) {
    ++fetches_;
    if (down_) return {503, ""};
    if (request.path == "/.well-known/openid-configuration") {
      return {200, json::serialize(
                       json::object{{"issuer", issuer_.url()}, {"jwks_uri", issuer_.url() + "/keys"}})};
    }
    json::array keys;
    for (const crypto::SigningKey& key : keys_) {
      json::object one;
      for (const auto& member : key.Jwk()) one[member.first] = member.second;
      keys.push_back(std::move(one));
    }
    return {200, json::serialize(json::object{{"keys", std::move(keys)}})};
  }

  int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  }
  json::object Claims() const {
    return {{"iss", issuer_.url()}, {"aud", "cluster"},         {"sub", "jane"},
            {"exp", Now() + 600},   {"groups", {"dev", "ops"}}, {"jti", "1"}};
  }
  static std::string Sign(const json::object& claims, const crypto::SigningKey& key,
                          std::string algorithm = "") {
    if (algorithm.empty()) algorithm = key.algorithm();
    std::string token =
        EncodeBase64(json::serialize(json::object{{"alg", algorithm}, {"kid", key.id()}}), Base64::kRawUrl) +
        "." + EncodeBase64(json::serialize(claims), Base64::kRawUrl);
    return token + "." + EncodeBase64(*key.Sign(token), Base64::kRawUrl);
  }
  // "name group group", "unknown" or the error.
  std::string Ask(const std::string& token) {
    if (!verifier_) {
      auto made = NewOidcVerifier(options_, clock_);
      EXPECT_TRUE(made) << made.error().message();
      verifier_ = *made;
    }
    auto answer = verifier_->Authenticate(token, kAudiences);
    if (!answer) return answer.error().message();
    if (!*answer) return "unknown";
    std::string out = (*answer)->user.name;
    for (const std::string& group : (*answer)->user.groups) out += " " + group;
    return out;
  }

  FakeClock clock_;
  std::atomic<int> fetches_{0};
  std::atomic<bool> down_{false};
  crypto::SigningKey rsa_, ec_;
  std::vector<crypto::SigningKey> keys_;
  HttpsService issuer_;
  OidcOptions options_;
  std::shared_ptr<TokenVerifier> verifier_;
};

TEST_F(OidcTest, ClaimsBecomeAUser) {
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "corp:jane corp:dev corp:ops");
  EXPECT_EQ(fetches_, 2);
  json::object one_group = Claims();
  one_group["groups"] = "admins";
  EXPECT_EQ(Ask(Sign(one_group, rsa_)), "corp:jane corp:admins");
  EXPECT_EQ(fetches_, 2);  // keys are kept
}

TEST_F(OidcTest, Refusals) {
  struct {
    const char* claim;
    json::value value;
    const char* said;
  } rows[] = {
      {"iss", "https://elsewhere", "unknown"},
      {"aud", "other", "oidc: verify token: oidc: expected audience in cluster got other"},
      {"exp", Now(), "oidc: verify token: oidc: token is expired"},
      {"exp", "never", "oidc: verify token: oidc: token is expired"},
      {"nbf", Now() + 301, "oidc: verify token: oidc: current time before the nbf (not before) time"},
      {"sub", 7, "oidc: parse username claims \"sub\": claim not present"},
      {"groups", 7, "oidc: parse groups claim \"groups\""},
      {"hd", "evil.example", "oidc: required claim hd value does not match"},
  };
  options_.required_claims = {{"hd", "corp.example"}};
  json::object good = Claims();
  good["hd"] = "corp.example";
  EXPECT_EQ(Ask(Sign(good, rsa_)), "corp:jane corp:dev corp:ops");
  for (const auto& row : rows) {
    json::object claims = good;
    claims[row.claim] = row.value;
    EXPECT_EQ(Ask(Sign(claims, rsa_)), row.said) << row.claim;
  }
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "oidc: required claim hd not present in ID token");
  for (const char* junk : {"", "a.b.c", "s3cret"}) EXPECT_EQ(Ask(junk), "unknown");
}

TEST_F(OidcTest, AlgorithmsAreNotConfused) {
  const std::string unsupported = "oidc: verify token: oidc: id token signed with unsupported algorithm";
  for (const char* algorithm : {"none", "HS256", "ES256", "RS384"}) {
    EXPECT_EQ(Ask(Sign(Claims(), rsa_, algorithm)), unsupported) << algorithm;
  }
  verifier_.reset();
  options_.algorithms = {"RS256", "RS384", "ES256"};
  // A key signs by its own kind of algorithm, whatever the header says.
  for (const char* algorithm : {"ES256", "RS384"}) {
    EXPECT_EQ(Ask(Sign(Claims(), rsa_, algorithm)), "oidc: verify token: failed to verify signature");
    verifier_.reset();
  }
  keys_ = {ec_};
  EXPECT_EQ(Ask(Sign(Claims(), ec_)), "corp:jane corp:dev corp:ops");
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "oidc: verify token: failed to verify signature");
}

TEST_F(OidcTest, KeysAreFetchedAgainForNewOnesButNotInAFlood) {
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "corp:jane corp:dev corp:ops");
  crypto::SigningKey next = *crypto::SigningKey::GenerateRsa();
  const std::string token = Sign(Claims(), next);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(token), "oidc: verify token: failed to verify signature");
  EXPECT_EQ(fetches_, 2);
  keys_ = {rsa_, next};
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_EQ(Ask(token), "corp:jane corp:dev corp:ops");
  EXPECT_EQ(fetches_, 4);
}

TEST_F(OidcTest, AProviderThatIsAwayLetsNobodyInAndIsAskedSeldom) {
  down_ = true;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "oidc: authenticator not initialized");
  EXPECT_EQ(fetches_, 1);
  down_ = false;
  clock_.Advance(std::chrono::seconds(11));
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "corp:jane corp:dev corp:ops");
  down_ = true;  // known keys stay valid
  clock_.Advance(std::chrono::seconds(60));
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "corp:jane corp:dev corp:ops");
}

TEST_F(OidcTest, EmailHasToBeVerified) {
  options_.username_claim = "email";
  json::object claims = Claims();
  claims["email"] = "jane@corp.example";
  claims["email_verified"] = false;
  EXPECT_EQ(Ask(Sign(claims, rsa_)), "oidc: email not verified");
  claims["email_verified"] = true;
  EXPECT_EQ(Ask(Sign(claims, rsa_)), "corp:jane@corp.example corp:dev corp:ops");
}

TEST_F(OidcTest, ExpressionsMapAndJudgeClaims) {
  auto expressions = std::make_shared<ClaimExpressions>();
  auto mapping = [](const char* text) { return *CompileClaimMapping(text); };
  expressions->username = mapping("'cel:' + claims.sub");
  expressions->groups = mapping("claims.roles.map(r, r.name)");
  expressions->uid = mapping("claims.sub + '-uid'");
  expressions->extra = {{"example.org/tenant", mapping("claims.tenant")},
                        {"example.org/none", mapping("claims.?missing.orValue('')")}};
  expressions->claim_rules = {{*CompileClaimRule("claims.level > 2"), "the level is too low"}};
  expressions->user_rules = {{*CompileUserRule("!user.username.startsWith('cel:system:')"), "reserved"}};
  options_.expressions = expressions;
  options_.groups_claim.clear();
  json::object claims = Claims();
  claims["sub"] = "jane";
  claims["level"] = 3;
  claims["tenant"] = "t1";
  claims["roles"] = json::array{json::object{{"name", "dev"}}, json::object{{"name", "ops"}}};
  EXPECT_EQ(Ask(Sign(claims, rsa_)), "cel:jane dev ops");
  const User user = (*verifier_->Authenticate(Sign(claims, rsa_), kAudiences))->user;
  EXPECT_EQ(user.uid, "jane-uid");
  EXPECT_EQ(user.extra.at("example.org/tenant"), std::vector<std::string>{"t1"});
  EXPECT_EQ(user.extra.count("example.org/none"), 0u);
  claims["level"] = 2;
  EXPECT_EQ(Ask(Sign(claims, rsa_)),
            "oidc: error evaluating claim validation expression: validation expression 'claims.level > 2' "
            "failed: the level is too low");
  claims["level"] = 3;
  claims["sub"] = "system:x";
  EXPECT_EQ(Ask(Sign(claims, rsa_)),
            "oidc: error evaluating user info validation rule: validation expression "
            "'!user.username.startsWith('cel:system:')' failed: reserved");
  claims["sub"] = "jane";
  claims["roles"] = json::array{json::object{{"name", 1}}};
  EXPECT_EQ(Ask(Sign(claims, rsa_)),
            "oidc: error evaluating group claim expression: expression must return a string or a list of "
            "strings");
  claims.erase("tenant");
  claims["roles"] = json::array();
  EXPECT_EQ(Ask(Sign(claims, rsa_)),
            "oidc: expression 'claims.tenant' resulted in error: no such key: tenant");
}

TEST_F(OidcTest, AnEmptyNameIsNoName) {
  auto expressions = std::make_shared<ClaimExpressions>();
  expressions->username = *CompileClaimMapping("claims.?nick.orValue('')");
  options_.expressions = expressions;
  EXPECT_EQ(Ask(Sign(Claims(), rsa_)), "oidc: username claim expression must not return an empty string");
}

TEST(ClaimExpressions, KnowWhichClaimsTheySelect) {
  for (const char* text : {"claims.email", "claims.?email.orValue('')", "has(claims.email) ? 'a' : 'b'",
                           "['x'].map(x, x + claims.email)[0]", "{'a': claims.email}.a"}) {
    EXPECT_TRUE(SelectsClaim(text, "email")) << text;
  }
  for (const char* text : {"claims.email_verified", "claims.sub", "'claims.email'", "claims.a.email"}) {
    EXPECT_FALSE(SelectsClaim(text, "email")) << text;
  }
}

std::string ConfigError(const std::string& body) {
  auto parsed = ParseAuthenticationConfig(
      "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n" + body,
      {"https://kubernetes.default.svc"});
  return parsed ? "" : parsed.error().message();
}

TEST(AuthenticationConfig, Table) {
  const std::string mapping = "claimMappings: {username: {claim: sub, prefix: ''}}";
  auto jwt = [&](const std::string& issuer, const std::string& rest) {
    return "jwt: [{issuer: {" + issuer + "}, " + rest + "}]\n";
  };
  const std::string good = "url: https://idp, audiences: [a]";
  struct {
    std::string body, said;
  } rows[] = {
      {"", ""},
      {jwt(good, mapping), ""},
      {"anonymous: {enabled: true, conditions: [{path: /livez}]}", ""},
      {"anonymous: {enabled: false, conditions: [{path: /livez}]}",
       "anonymous.conditions: enabled should be set to true when conditions are defined"},
      {"anonymos: {enabled: true}", "unknown field \"anonymos\""},
      {jwt("url: http://idp, audiences: [a]", mapping), "jwt[0].issuer.url: URL scheme must be https"},
      {jwt("url: https://kubernetes.default.svc, audiences: [a]", mapping),
       "jwt[0].issuer.url: URL must not overlap with disallowed issuers"},
      {jwt("url: https://idp", mapping),
       "jwt[0].issuer.audiences: Required value: at least one audience is required"},
      {jwt(good, "claimMappings: {username: {claim: sub}}"),
       "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can "
       "be "
       "set to an empty string to disable prefixing"},
      {jwt(good, "claimMappings: {username: {expression: claims.sub}}"), ""},
      {jwt(good, "claimMappings: {username: {claim: sub, prefix: '', expression: claims.sub}}"),
       "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set"},
      {jwt(good, "claimMappings: {username: {}}"),
       "jwt[0].claimMappings.username: Required value: claim or expression is required"},
      {jwt(good, "claimMappings: {username: {expression: claims.sub, prefix: x}}"),
       "jwt[0].claimMappings.username.prefix: may not be specified when expression is set"},
      {jwt(good, "claimMappings: {username: {expression: claims.email}}"),
       "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified "
       "must "
       "be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
       "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"},
      {jwt(good,
           "claimMappings: {username: {expression: claims.email}}, claimValidationRules: [{expression: "
           "'claims.?email_verified.orValue(true) == true'}]"),
       ""},
      {jwt(good, mapping + ", userValidationRules: [{expression: 'user.username.size()'}]"),
       "jwt[0].userValidationRules[0].expression: Invalid value: \"user.username.size()\": must evaluate to "
       "bool"},
      {jwt(good, mapping + ", userValidationRules: [{expression: 'user.nick == \"\"'}]"),
       "jwt[0].userValidationRules[0].expression: Invalid value: \"user.nick == \\\"\\\"\": compilation "
       "failed: "
       "ERROR: <input>:1:5: undefined field 'nick'\n | user.nick == \"\"\n | ....^"},
      {jwt(good, mapping + ", userValidationRules: [{message: x}]"),
       "jwt[0].userValidationRules[0].expression: Required value"},
      {jwt(good, mapping + ", claimValidationRules: [{expression: 'claims.ok'}]"),
       "jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.ok\": must evaluate to bool"},
      {jwt(good, mapping + ", claimValidationRules: [{claim: hd, message: x}]"),
       "jwt[0].claimValidationRules[0].message: may not be specified when claim is set"},
      {jwt(good, mapping + ", claimValidationRules: [{}]"),
       "jwt[0].claimValidationRules[0]: Required value: claim or expression is required"},
      {jwt(good,
           "claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: example.org/A, "
           "valueExpression: claims.a}, {key: x.k8s.io/b, valueExpression: claims.b}, {key: c}]}"),
       "jwt[0].claimMappings.extra[0].key: Invalid value: \"example.org/A\": must be lowercase, "
       "jwt[0].claimMappings.extra[1].key: Invalid value: \"x.k8s.io/b\": k8s.io, kubernetes.io and their "
       "subdomains are reserved for Kubernetes use, jwt[0].claimMappings.extra[2].key: Invalid value: \"c\": "
       "must "
       "be a domain-prefixed path (such as \"acme.io/foo\"), "
       "jwt[0].claimMappings.extra[2].valueExpression: Required value"},
      {jwt(good, mapping + ", claimValidationRules: [{claim: hd, requiredValue: x}]"), ""},
  };
  for (const auto& row : rows) EXPECT_EQ(ConfigError(row.body), row.said) << row.body;
  auto wrong = ParseAuthenticationConfig("apiVersion: v1\nkind: Config\n", {});
  ASSERT_FALSE(wrong);
  EXPECT_FALSE(ParseAuthenticationConfig("jwt: [", {}));
}

}  // namespace
}  // namespace keelson::apiserver
