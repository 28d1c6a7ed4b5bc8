// Hostile clients against the real program: floods, malformed input, expired or foreign credentials,
// unresponsive webhooks. Other clients are served meanwhile.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "lib/base/base64.h"
#include "lib/base/file.h"
#include "lib/crypto/signing_key.h"
#include "lib/http/testing/hostile_peer.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

constexpr char kVersion[] = "/version";

class HostileCluster : public ClusterTest {
 protected:
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(Run({"get", "cm", "kube-root-ca.crt"}).code, 0) << "others are not served";
  }
  static int Status(http::Headers headers, http::Client* client = nullptr, const char* target = kVersion) {
    std::unique_ptr<http::Client> own;
    if (!client) client = (own = cluster_->NewClient("")).get();
    auto response = client->Do({"GET", target, std::move(headers), ""}, seconds(20));
    return response ? response->status : -1;
  }
  static std::unique_ptr<http::Client> With(const crypto::TestCertificate& certificate) {
    http::ClientOptions options;
    options.base_url = cluster_->url();
    options.tls.ca_pem = cluster_->pki().ca_pem();
    options.tls.certificate_pem = certificate.certificate_pem;
    options.tls.key_pem = certificate.key_pem;
    return std::move(*http::Client::Create(std::move(options)));
  }
};

TEST_F(HostileCluster, FloodsCostLittle) {
  const size_t before = cluster_->ResidentMb();
  std::vector<std::unique_ptr<http::RawPeer>> peers;
  std::vector<std::unique_ptr<http::RawTls>> idle;
  for (int i = 0; i < 150; ++i) {
    peers.push_back(std::make_unique<http::RawPeer>(cluster_->port()));
    if (i % 2) peers.back()->Send("\x16\x03\x01\x02");  // a handshake that goes no further
    idle.push_back(std::make_unique<http::RawTls>(cluster_->port()));
    if (i % 2) idle.back()->Send(http::kHttp2Preface);
    if (i % 4 == 3) idle.back()->Send(http::Frame(http::kHeaders, 4, 1, http::kHttp2Get));  // and no end
  }
  for (const char* what : {"resets", "pings", "overflows"}) {
    http::RawTls raw(cluster_->port());
    raw.Send(http::kHttp2Preface);
    bool cut = false;
    for (uint32_t i = 0; i < 2000000 && !cut; i += 20) {
      std::string bytes;
      for (uint32_t j = i; j < i + 20; ++j) {
        const uint32_t stream = 2 * j + 1;
        if (what[0] == 'p') {
          bytes += http::Frame(http::kPing, 0, 0, "12345678");
          continue;
        }
        bytes += http::Frame(http::kHeaders, 5, stream, http::kHttp2Get);
        bytes += what[0] == 'r' ? http::Frame(http::kRstStream, 0, stream, std::string("\0\0\0\x08", 4))
                                : http::Frame(http::kWindowUpdate, 0, stream, "\x7f\xff\xff\xff");
      }
      cut = !raw.Send(bytes);
    }
    EXPECT_TRUE(cut) << what;
    EXPECT_EQ(Status({}), 200) << what;
  }
  EXPECT_LT(cluster_->ResidentMb(), before + 120);
}

TEST_F(HostileCluster, JunkIsAnsweredAsUpstreamDoes) {
  http::RawPeer plain(cluster_->port());
  plain.Send("GET /api HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadAll(),
            "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
  http::RawPeer noise(cluster_->port());
  noise.Send("SSH-2.0-client\r\n");
  EXPECT_LT(noise.ReadAll().size(), 100u);

  auto admin = cluster_->NewClient("admin");
  http::Headers long_one{{"X-Long", std::string(60000, 'x')}};
  EXPECT_EQ(Status(long_one, admin.get()), 200);
  auto large = admin->Do({"POST",
                          "/api/v1/namespaces/" + ns_ + "/configmaps",
                          {{"Content-Type", "application/json"}},
                          std::string(4 << 20, ' ')},
                         seconds(20));
  ASSERT_TRUE(large) << large.error().message();
  EXPECT_EQ(large->status, 413);
}

// Expired, unknown or foreign credentials: 401, even where anonymous requests are allowed.
TEST_F(HostileCluster, BadCredentialsAreNotOverlooked) {
  crypto::TestPki strangers;
  const crypto::TestPki& pki = cluster_->pki();
  using std::chrono::hours;
  struct {
    const char* name;
    crypto::TestCertificate certificate;
    int status;
  } rows[] = {
      {"good", pki.Client("jane", {"system:masters"}), 200},
      {"expired", pki.Client("jane", {"system:masters"}, hours(-2), hours(-1)), 401},
      {"not yet valid", pki.Client("jane", {"system:masters"}, hours(1), hours(2)), 401},
      {"of another CA", strangers.Client("jane", {"system:masters"}), 401},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Status({}, With(row.certificate).get()), row.status) << row.name;
  }
  EXPECT_EQ(Status({}), 200);  // nothing is shown: /version is for everybody
}

TEST_F(HostileCluster, Tokens) {
  Kubectl({"create", "sa", "app"});
  const std::string good = Kubectl({"create", "token", "app"});
  const crypto::SigningKey key =
      crypto::SigningKey::FromPem(*ReadFile(cluster_->pki().dir() + "/sa.key"))->front();
  auto part = [&](int index) {
    size_t begin = 0;
    for (int i = 0; i < index; ++i) begin = good.find('.', begin) + 1;
    return good.substr(begin, good.find('.', begin) - begin);
  };
  const json::object claims = json::parse(*DecodeBase64(part(1), Base64::kRawUrl)).as_object();
  const int64_t now = claims.at("iat").to_number<int64_t>();
  auto sign = [&](const std::function<void(json::object&)>& change, const json::object& header) {
    json::object changed = claims;
    change(changed);
    std::string token = EncodeBase64(json::serialize(header), Base64::kRawUrl) + "." +
                        EncodeBase64(json::serialize(changed), Base64::kRawUrl);
    return token + "." + EncodeBase64(*key.Sign(token), Base64::kRawUrl);
  };
  const json::object header{{"alg", "RS256"}, {"kid", key.id()}};
  auto set = [](const char* name, json::value value) {
    return [name, value](json::object& object) { object[name] = value; };
  };
  auto same = [](json::object&) {};
  struct {
    const char* name;
    std::string token;
    int status;
  } rows[] = {
      {"good", good, 200},
      {"signed anew", sign(same, header), 200},
      {"just expired: within the leeway", sign(set("exp", now - 20), header), 200},
      {"expired", sign(set("exp", now - 3600), header), 401},
      {"a clock that is a little ahead", sign(set("nbf", now + 20), header), 200},
      {"not yet valid", sign(set("nbf", now + 3600), header), 401},
      {"for somebody else", sign(set("aud", json::array{"vault"}), header), 401},
      {"for nobody", sign(set("aud", json::array{}), header), 401},
      {"another account", sign(set("sub", "system:serviceaccount:kube-system:admin"), header), 401},
      {"another issuer", sign(set("iss", "https://elsewhere"), header), 401},
      {"alg none", EncodeBase64(R"({"alg":"none"})", Base64::kRawUrl) + "." + part(1) + ".", 401},
      {"alg none, signed", sign(same, {{"alg", "none"}, {"kid", key.id()}}), 401},
      {"RSA as HMAC", sign(same, {{"alg", "HS256"}, {"kid", key.id()}}), 401},
      {"RSA as ECDSA", sign(same, {{"alg", "ES256"}, {"kid", key.id()}}), 401},
      {"a key of its own", sign(same, {{"alg", "RS256"}, {"jwk", {{"kty", "RSA"}}}, {"kid", "mine"}}), 200},
      {"cut", good.substr(0, good.size() - 4), 401},
      {"three dots", "a.b.c", 401},
      {"long", std::string(40000, 'a') + "." + std::string(20000, 'b') + ".c", 401},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Status({{"Authorization", "Bearer " + row.token}}), row.status) << row.name;
  }
}

// Both webhooks point to a closed port.
class AwayCluster : public HostileCluster {
 protected:
  static std::string Write(const crypto::TestPki& pki, const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFile(pki.dir() + "/" + name, text));
    return pki.dir() + "/" + name;
  }
  static std::vector<std::string> Flags(const crypto::TestPki& pki) {
    std::string away =
        Write(pki, "away.conf",
              "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: "
              "{server: 'https://127.0.0.1:1/'}}]\nusers: [{name: u, user: {}}]\ncontexts: "
              "[{name: c, context: {cluster: c, user: u}}]\n");
    std::string config =
        Write(pki, "authorization.yaml",
              "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
              "- {type: Webhook, name: away, webhook: {timeout: 3s, subjectAccessReviewVersion: v1, "
              "matchConditionSubjectAccessReviewVersion: v1, authorizedTTL: 1m, unauthorizedTTL: 1m, "
              "failurePolicy: Deny, connectionInfo: {type: KubeConfigFile, kubeConfigFile: " +
                  away + "}}}\n- {type: RBAC, name: rbac}\n");
    return {"--roles=apiserver", "--authorization-config=" + config,
            "--authentication-token-webhook-config-file=" + away};
  }
  static void SetUpTestSuite() {
    pki_ = std::make_unique<crypto::TestPki>();
    Start(Flags(*pki_));
  }
  static void TearDownTestSuite() {
    ClusterTest::TearDownTestSuite();
    pki_.reset();
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }
  void TearDown() override {}
  inline static std::unique_ptr<crypto::TestPki> pki_;  // for its directory
};

TEST_F(AwayCluster, WhoCannotBeAskedLetsNobodyIn) {
  // RBAC's permissions do not apply any more; system:masters still does.
  cluster_->AddUser("dev", {"team"});
  EXPECT_EQ(
      cluster_->Kubectl({"create", "clusterrolebinding", "dev", "--clusterrole=view", "--group=team"}).code,
      0);
  http::ClientRequest list;
  list.target = "/api/v1/namespaces/default/pods";
  http::ClientResponse refused = cluster_->Do(list, "dev");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("pods is forbidden: User \\\"dev\\\" cannot list resource \\\"pods\\\""),
            std::string::npos)
      << refused.body;
  EXPECT_EQ(cluster_->Kubectl({"get", "pods"}).code, 0);
  // An unknown token: 401, as for any other.
  EXPECT_EQ(Status({{"Authorization", "Bearer unknown-to-all"}}), 401);
  EXPECT_EQ(Status({}), 403);
}

}  // namespace
}  // namespace keelson::apiserver
