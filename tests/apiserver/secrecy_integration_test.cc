// Secrets do not leak into logs (with debug messages), error responses, pages, or an audit log at level
// Metadata.
#include <gtest/gtest.h>

#include "lib/base/base64.h"
#include "lib/base/file.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

// Every secret of this test contains this text, so that one search finds all.
constexpr char kMark[] = "hush5ecret";

std::string Base64(std::string_view text) {
  std::string out = EncodeBase64(text, Base64::kRawUrl);
  for (char& c : out) c = c == '-' ? '+' : c == '_' ? '/' : c;
  return out.append((4 - out.size() % 4) % 4, '=');
}

class Secrecy : public ClusterTest {
 protected:
  static std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(pki_->dir() + "/" + name, text));
    return pki_->dir() + "/" + name;
  }
  static std::string Encryption(const std::string& secret) {
    return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
           "- resources: [secrets]\n  providers:\n  - aesgcm: {keys: [{name: one, secret: '" +
           secret + "'}]}\n";
  }
  static void SetUpTestSuite() {
    pki_ = std::make_unique<crypto::TestPki>();
    const std::string kubeconfig =
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: "
        "'https://127.0.0.1:1/x'}}]\nusers: [{name: u, user: {token: kubeconfig-" +
        std::string(kMark) + "}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n";
    Write("encryption.yaml", Encryption(Base64("0123" + std::string(kMark) + "45")));
    Start(
        {"--v=9", "--enable-bootstrap-token-auth",
         "--token-auth-file=" + Write("tokens.csv", std::string("static-") + kMark + ",rob,1,\"ops\"\n"),
         "--authentication-token-webhook-config-file=" + Write("webhook.conf", kubeconfig),
         "--audit-policy-file=" +
             Write("policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"),
         "--audit-log-path=" + pki_->dir() + "/audit.log",
         "--encryption-provider-config=" + pki_->dir() + "/encryption.yaml",
         "--encryption-provider-config-automatic-reload"});
  }
  static void TearDownTestSuite() {
    ClusterTest::TearDownTestSuite();
    pki_.reset();
  }
  // In the default namespace.
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
    ns_ = "default";
  }

  // Text that must not occur: the mark, plain or in any base64 phase, and issued tokens.
  void ExpectSecret(const std::string& what, const std::string& text) {
    std::vector<std::string> forms = issued_;
    forms.emplace_back(kMark);
    for (size_t phase = 0; phase < 3; ++phase) {
      std::string form = EncodeBase64(std::string(phase, 'a') + kMark, Base64::kRawUrl);
      forms.push_back(form.substr(phase == 0 ? 0 : phase + 1, 11));
    }
    for (const std::string& form : forms) {
      const size_t at = text.find(form);
      EXPECT_EQ(at, std::string::npos) << what << ": ..." << text.substr(at < 300 ? 0 : at - 300, 500);
    }
  }
  void Refused(const std::vector<std::string>& arguments, const std::string& input) {
    Output output = cluster_->Kubectl(arguments, input);
    EXPECT_NE(output.code, 0) << testing::PrintToString(arguments);
    ExpectSecret(testing::PrintToString(arguments), output.err);
  }
  int Ask(http::Headers headers) {
    http::ClientRequest request{"GET", "/api/v1/namespaces/default/secrets", std::move(headers), ""};
    http::ClientResponse response = cluster_->Do(request, "");
    if (response.status != 200) ExpectSecret("answer", response.body);
    return response.status;
  }
  inline static std::unique_ptr<crypto::TestPki> pki_;  // for its directory
  std::vector<std::string> issued_;
};

TEST_F(Secrecy, NothingIsSaidOfSecrets) {
  const std::string mark = kMark;
  // Objects, stored and refused.
  Kubectl({"create", "secret", "generic", "s", "--from-literal=password=" + mark});
  const std::string applied =
      "apiVersion: v1\nkind: Secret\nmetadata: {name: applied}\nstringData: {a: " + mark + "}\n";
  Kubectl({"apply", "-f", "-"}, applied);
  Kubectl({"apply", "--server-side", "--force-conflicts", "-f", "-"}, applied);
  Kubectl({"patch", "secret", "s", "-p", "{\"stringData\":{\"more\":\"" + mark + "\"}}"});
  auto secret = [](const std::string& rest) {
    return "apiVersion: v1\nkind: Secret\nmetadata: {name: bad}\n" + rest;
  };
  const std::vector<std::string> create = {"create", "--validate=false", "-f", "-"};
  Refused(create,
          secret("type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{" + mark + "'}\n"));
  Refused(create, secret("type: kubernetes.io/dockercfg\nstringData: {.dockercfg: '[" + mark + "'}\n"));
  Refused(create, secret("type: kubernetes.io/tls\nstringData: {tls.crt: " + mark + "}\n"));
  Refused(create, secret("data: {a: '" + mark + "!'}\n"));
  Refused(create, secret("data: {a: {b: " + mark + "}}\n"));
  Refused({"patch", "secret", "s", "--type=json", "-p",
           R"([{"op":"test","path":"/data/password","value":")" + mark + R"("}])"},
          "");
  for (const char* type : {"strategic", "merge"}) {
    Refused({"patch", "secret", "s", "--type", type, "-p", R"({"data":{"x":")" + mark + R"(!"}})"}, "");
  }
  // With the previous data
  Refused({"patch", "secret", "s", "--type=merge", "-p", R"({"data":{"x":"!"}})"}, "");

  // Valid and invalid credentials, in every place that accepts them.
  EXPECT_EQ(Ask({{"Authorization", "Bearer static-" + mark}}), 403);
  EXPECT_EQ(Ask({{"Authorization", "Bearer wrong-" + mark}}), 401);
  EXPECT_EQ(Ask({{"Authorization", "bearer " + mark + " " + mark}}), 401);
  EXPECT_EQ(Ask({{"Authorization", "Basic " + Base64("rob:" + mark)}}), 403);
  EXPECT_EQ(Ask({{"Authorization",
                  "Bearer " + EncodeBase64("{\"alg\":\"RS256\",\"kid\":\"" + mark + "\"}", Base64::kRawUrl) +
                      "." + EncodeBase64("{\"iss\":\"" + mark + "\"}", Base64::kRawUrl) + "." + mark}}),
            401);
  EXPECT_EQ(Ask({{"Sec-WebSocket-Protocol",
                  "base64url.bearer.authorization.k8s.io." + EncodeBase64(mark, Base64::kRawUrl)}}),
            401);
  Kubectl({"--namespace=kube-system", "create", "secret", "generic", "bootstrap-token-abcdef",
           "--type=bootstrap.kubernetes.io/token", "--from-literal=token-id=abcdef",
           "--from-literal=token-secret=" + mark + "012345",
           "--from-literal=usage-bootstrap-authentication=true"});
  EXPECT_EQ(Ask({{"Authorization", "Bearer abcdef." + mark + "012345"}}), 403);
  EXPECT_EQ(Ask({{"Authorization", "Bearer abcdef." + mark + "999999"}}), 401);
  Kubectl({"wait", "--for=create", "sa/default", "--timeout=30s"});
  const std::string token = Kubectl({"create", "token", "default"});
  issued_ = {token, token.substr(token.rfind('.') + 1)};
  EXPECT_EQ(Ask({{"Authorization", "Bearer " + token}}), 403);
  EXPECT_EQ(Ask({{"Authorization", "Bearer " + token.substr(0, token.size() - 6) + "AAAAAA"}}), 401);
  const std::string review =
      "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{\"token\":\"";
  EXPECT_EQ(Kubectl({"create", "-f", "-", "-o", "jsonpath={.status.user.username}"},
                    review + "static-" + mark + "\"}}"),
            "rob");
  ExpectSecret("review", Kubectl({"create", "-f", "-", "-o", "jsonpath={.status}"}, review + mark + "\"}}"));

  // A configuration replaced by an invalid one: the server logs only its location.
  const size_t told = cluster_->Log().size();
  Write("encryption.yaml", Encryption(mark + "-not-base64"));
  for (int i = 0; i < 100 && cluster_->Log().find("ncryption", told) == std::string::npos; ++i) {
    Kubectl({"get", "secrets"});
  }

  const std::string log = cluster_->Log();
  EXPECT_NE(log.find("Token refused"), std::string::npos);  // the log is the right one
  ExpectSecret("log", log);
  const std::string audit = *ReadFile(pki_->dir() + "/audit.log");
  EXPECT_NE(audit.find("\"name\":\"applied\""), std::string::npos);
  ExpectSecret("audit", audit);
  for (const char* page : {"/metrics", "/flagz", "/statusz", "/configz"}) {
    http::ClientRequest request;
    request.target = page;
    ExpectSecret(page, cluster_->Do(request).body);
  }
}

}  // namespace
}  // namespace keelson::apiserver
