#include "controlplane/apiserver/authn/authenticator.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/authn/bootstrap_tokens.h"
#include "controlplane/apiserver/authn/static_tokens.h"
#include "lib/base/base64.h"

namespace keelson::apiserver {
namespace {

using Groups = std::vector<std::string>;
const std::vector<std::string> kAudiences = {"api"};

Authenticator::Options WithStaticTokens() {
  Authenticator::Options options;
  options.api_audiences = kAudiences;
  options.tokens = {NewStaticTokenVerifier(
      *ParseTokenFile("s3cret,alice,42,\"dev,ops\"\n# comment\n\nother,bob,7\n,nobody,0\n"), kAudiences)};
  return options;
}

TEST(Authenticator, TokensAndCertificates) {
  Authenticator authenticator(WithStaticTokens());
  http::ServerRequest request;
  EXPECT_EQ(authenticator.Authenticate(request)->name, "system:anonymous");
  request.headers.Set("Authorization", "Bearer s3cret");
  Result<User> alice = authenticator.Authenticate(request);
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_EQ(alice->groups, (Groups{"dev", "ops", "system:authenticated"}));
  request.headers.Set("Authorization", "Bearer wrong");
  Result<User> nobody = authenticator.Authenticate(request);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().message(), "Unauthorized");
  request.peer.emplace();
  request.peer->common_name = "kubernetes-admin";
  request.peer->organizations = {"system:masters"};
  request.peer->sha256_fingerprint = "ab";
  Result<User> admin = authenticator.Authenticate(request);
  EXPECT_EQ(admin->name, "kubernetes-admin");
  EXPECT_TRUE(admin->InGroup("system:masters"));
  EXPECT_EQ(admin->extra.at("authentication.kubernetes.io/credential-id"), Groups{"X509SHA256=ab"});

  // Invalid credentials are an error, not anonymous.
  http::ServerRequest shown;
  shown.peer_refused = true;
  EXPECT_FALSE(authenticator.Authenticate(shown));
  shown.headers.Set("Authorization", "Bearer s3cret");
  EXPECT_EQ(authenticator.Authenticate(shown)->name, "alice");

  http::ServerRequest web_socket;
  web_socket.headers.Set(
      "Sec-WebSocket-Protocol",
      "v4.channel.k8s.io, base64url.bearer.authorization.k8s.io." + EncodeBase64("s3cret", Base64::kRawUrl));
  EXPECT_EQ(authenticator.Authenticate(web_socket)->name, "alice");
}

TEST(Authenticator, CertificatesCarryAUid) {
  Authenticator authenticator(WithStaticTokens());
  http::ServerRequest request;
  request.peer.emplace();
  request.peer->common_name = "alice";
  request.peer->uid = "u-1";
  EXPECT_EQ(authenticator.Authenticate(request)->uid, "u-1");
  request.peer->uid_problem = "expected 1 UID, but found multiple";
  EXPECT_FALSE(authenticator.Authenticate(request));
}

TEST(Authenticator, CertificatesEndOnOpenConnections) {
  FakeClock clock;
  Authenticator authenticator(WithStaticTokens(), clock);
  http::ServerRequest request;
  request.peer.emplace();
  request.peer->common_name = "alice";
  request.peer->not_after = clock.Now() + std::chrono::hours(1);
  EXPECT_TRUE(authenticator.Authenticate(request));
  clock.Advance(std::chrono::hours(2));
  EXPECT_FALSE(authenticator.Authenticate(request));
}

TEST(Authenticator, TokenReviewsAskForAudiences) {
  Authenticator authenticator(WithStaticTokens());
  EXPECT_EQ(authenticator.AuthenticateToken("other", {})->audiences, kAudiences);
  EXPECT_EQ(authenticator.AuthenticateToken("other", {"vault", "api"})->audiences, kAudiences);
  Result<TokenAnswer> vault = authenticator.AuthenticateToken("other", {"vault"});
  ASSERT_FALSE(vault);
  EXPECT_EQ(vault.error().message(), "invalid bearer token");
  EXPECT_FALSE(ParseTokenFile("only-a-token"));
}

TEST(Authenticator, AnonymousByPath) {
  Authenticator::Options options;
  options.anonymous.paths = {"/livez"};
  Authenticator some(options);
  http::ServerRequest request;
  request.path = "/livez";
  EXPECT_TRUE(some.Authenticate(request));
  for (const char* path : {"/livez/", "/livez/ping", "/readyz", "/api"}) {
    request.path = path;
    EXPECT_FALSE(some.Authenticate(request)) << path;
  }
  options.anonymous = {false, {}};
  request.path = "/livez";
  EXPECT_FALSE(Authenticator(options).Authenticate(request));
}

TEST(Authenticator, ProxiesSpeakForOthers) {
  Authenticator::Options options;
  options.request_header = {"front-proxy-ca.crt", {"front-proxy"},    {"X-Remote-User"},
                            {"X-Remote-Uid"},     {"X-Remote-Group"}, {"X-Remote-Extra-"}};
  Authenticator authenticator(options);
  http::ServerRequest request;
  request.headers = {{"X-Remote-User", "carol"},
                     {"x-remote-uid", "7"},
                     {"X-Remote-Group", "a"},
                     {"X-Remote-Group", "b"},
                     {"X-Remote-Extra-Example.com%2fScope", "read"}};
  EXPECT_EQ(authenticator.Authenticate(request)->name, "system:anonymous");  // no certificate
  request.peer.emplace();
  request.peer->common_name = "front-proxy";
  request.peer->from_client_ca = false;
  EXPECT_FALSE(authenticator.Authenticate(request));  // of no CA that counts
  request.peer->from_proxy_ca = true;
  Result<User> carol = authenticator.Authenticate(request);
  ASSERT_TRUE(carol);
  EXPECT_EQ(carol->name, "carol");
  EXPECT_EQ(carol->uid, "7");
  EXPECT_EQ(carol->groups, (Groups{"a", "b", "system:authenticated"}));
  EXPECT_EQ(carol->extra.at("example.com/scope"), Groups{"read"});
  request.peer->common_name = "other";
  EXPECT_FALSE(authenticator.Authenticate(request));
  // A client's certificate does not make it a proxy.
  request.peer->common_name = "front-proxy";
  request.peer->from_client_ca = true;
  request.peer->from_proxy_ca = false;
  EXPECT_EQ(authenticator.Authenticate(request)->name, "front-proxy");
}

TEST(BootstrapTokens, Table) {
  const BootstrapSecret good{"bootstrap.kubernetes.io/token",
                             {{"token-id", "abcdef"},
                              {"token-secret", "0123456789abcdef"},
                              {"usage-bootstrap-authentication", "true"},
                              {"auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"}}};
  auto with = [&](const char* key, const char* value) {
    BootstrapSecret secret = good;
    secret.data[key] = value;
    return secret;
  };
  BootstrapSecret other_type = good, deleted = good;
  other_type.type = "Opaque";
  deleted.deleted = true;
  struct {
    BootstrapSecret secret;
    std::string token, groups;
  } rows[] = {
      {good, "abcdef.0123456789abcdef",
       "system:bootstrappers system:bootstrappers:kubeadm:default-node-token "},
      {good, "abcdef.0123456789abcdeg", "unknown"},
      {good, "abcdef.0123456789abcde", "unknown"},
      {good, "ABCDEF.0123456789abcdef", "unknown"},
      {good, "zbcdef.0123456789abcdef", "unknown"},
      {other_type, "abcdef.0123456789abcdef", "unknown"},
      {deleted, "abcdef.0123456789abcdef", "unknown"},
      {with("token-id", "zbcdef"), "abcdef.0123456789abcdef", "unknown"},
      {with("usage-bootstrap-authentication", "yes"), "abcdef.0123456789abcdef", "unknown"},
      {with("expiration", "2020-01-01T00:00:00Z"), "abcdef.0123456789abcdef", "unknown"},
      {with("expiration", "soon"), "abcdef.0123456789abcdef", "unknown"},
      {with("expiration", "2999-01-01T00:00:00+02:00"), "abcdef.0123456789abcdef",
       "system:bootstrappers system:bootstrappers:kubeadm:default-node-token "},
      {with("auth-extra-groups", ""), "abcdef.0123456789abcdef", "system:bootstrappers "},
      {with("auth-extra-groups", "system:masters"), "abcdef.0123456789abcdef",
       "bootstrap token group \"system:masters\" is invalid (must match "
       "\\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\\z)"},
  };
  for (const auto& row : rows) {
    auto verifier = NewBootstrapTokenVerifier(
        [&](const std::string& name) -> std::optional<BootstrapSecret> {
          if (name != "bootstrap-token-abcdef") return std::nullopt;
          return row.secret;
        },
        kAudiences);
    auto answer = verifier->Authenticate(row.token, kAudiences);
    std::string said = answer ? (*answer ? "" : "unknown") : answer.error().message();
    if (answer && *answer) {
      EXPECT_EQ((*answer)->user.name, "system:bootstrap:abcdef");
      for (const std::string& group : (*answer)->user.groups) said += group + " ";
    }
    EXPECT_EQ(said, row.groups) << row.token;
  }
}

}  // namespace
}  // namespace keelson::apiserver
