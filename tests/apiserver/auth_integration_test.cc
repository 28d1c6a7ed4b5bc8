// Every authentication method, and the permissions of its users: the real program and kubectl.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "controlplane/apiserver/testing/https_service.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/crypto/signing_key.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr char kNo[] = "no - No policy matched.\n";  // the last of the authorizers has the word

// An OpenID Connect provider.
struct Provider {
  crypto::SigningKey key = *crypto::SigningKey::GenerateRsa();
  HttpsService service{[this](const http::ServerRequest& request) { return Answer(request); }};

  HttpsService::Answer Answer(const http::ServerRequest& request) const {
    if (request.path == "/.well-known/openid-configuration") {
      return {200, json::serialize(
                       json::object{{"issuer", service.url()}, {"jwks_uri", service.url() + "/keys"}})};
    }
    json::object one;
    for (const auto& member : key.Jwk()) one[member.first] = member.second;
    return {200, json::serialize(json::object{{"keys", {one}}})};
  }
  std::string Token(const std::string& audience) const {
    std::string token =
        EncodeBase64(json::serialize(json::object{{"alg", "RS256"}, {"kid", key.id()}}), Base64::kRawUrl) +
        "." +
        EncodeBase64(json::serialize(json::object{
                         {"iss", service.url()}, {"aud", audience}, {"sub", "jane"}, {"exp", 4102444800}}),
                     Base64::kRawUrl);
    return token + "." + EncodeBase64(*key.Sign(token), Base64::kRawUrl);
  }
};

struct World {
  crypto::TestPki proxies;
  Provider provider;
  std::string ConfigFile() const {
    std::string file = proxies.dir() + "/authentication.yaml", ca;
    for (char c : provider.service.ca_pem()) ca += c == '\n' ? std::string("\n      ") : std::string(1, c);
    (void)WriteFile(file,
                    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
                    "anonymous: {enabled: true, conditions: [{path: /readyz}, {path: /livez}]}\n"
                    "jwt:\n- issuer:\n    url: " +
                        provider.service.url() +
                        "\n    audiences: [cluster]\n    certificateAuthority: |\n      " + ca +
                        "\n  claimMappings: {username: {claim: sub, prefix: 'corp:'}}\n");
    return file;
  }
  std::string PolicyFile() const {
    std::string file = proxies.dir() + "/policy.jsonl";
    (void)WriteFile(file,
                    "# who has always been let in\n{\"user\":\"abe\",\"namespace\":\"abac\",\"resource\":"
                    "\"pods\",\"readonly\":true}\n");
    return file;
  }
  std::vector<std::string> Flags() const {
    return {"--roles",
            "apiserver,controllers",
            "--enable-bootstrap-token-auth",
            "--authorization-mode",
            "Node,RBAC,ABAC",
            "--authorization-policy-file",
            PolicyFile(),
            "--authentication-config",
            ConfigFile(),
            "--requestheader-client-ca-file",
            proxies.ca_file(),
            "--requestheader-allowed-names",
            "front-proxy",
            "--requestheader-username-headers",
            "X-Remote-User",
            "--requestheader-group-headers",
            "X-Remote-Group",
            "--requestheader-extra-headers-prefix",
            "X-Remote-Extra-"};
  }
};

class Auth : public ClusterTest {
 protected:
  static void SetUpTestSuite() {
    world_ = std::make_unique<World>();
    Start(world_->Flags());
  }
  static void TearDownTestSuite() {
    ClusterTest::TearDownTestSuite();
    world_.reset();
  }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << missing_;
  }

  TestCluster& cluster() { return *cluster_; }
  std::string Kubectl(const std::vector<std::string>& arguments, const std::string& user = "admin",
                      int code = 0, const std::string& input = "") {
    Output output = cluster().Kubectl(arguments, input, user);
    EXPECT_EQ(output.code, code) << testing::PrintToString(arguments) << "\n" << output.err;
    return output.out + output.err;
  }
  // The authenticated user; "401" and the like otherwise.
  std::string WhoAmI(http::Headers headers, http::Client* client = nullptr) {
    http::ClientRequest request{"POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                std::move(headers),
                                R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"};
    request.headers.Set("Content-Type", "application/json");
    std::unique_ptr<http::Client> own;
    if (!client) client = (own = cluster().NewClient("")).get();
    auto response = client->Do(request, std::chrono::seconds(20));
    if (!response) return response.error().message();
    if (response->status != 201) return std::to_string(response->status);
    return std::string(json::parse(response->body).at_pointer("/status/userInfo/username").as_string());
  }
  std::string WithToken(const std::string& token) { return WhoAmI({{"Authorization", "Bearer " + token}}); }

  inline static std::unique_ptr<World> world_;
};

TEST_F(Auth, AnswersAreNotEchoed) {
  struct Case {
    const char *path, *body;
  };
  const Case cases[] = {
      {"/apis/authentication.k8s.io/v1/selfsubjectreviews",
       R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview",)"
       R"("status":{"userInfo":{"username":"liar","uid":"liar","groups":["liar"],"extra":{"liar":["liar"]}}}})"},
      {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
       R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",)"
       R"("spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}},)"
       R"("status":{"allowed":false,"denied":true,"reason":"liar","evaluationError":"liar"}})"},
      {"/apis/authentication.k8s.io/v1/tokenreviews",
       R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"},)"
       R"("status":{"authenticated":true,"user":{"username":"liar"},"audiences":["liar"]}})"},
      {"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
       R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"default"},)"
       R"("status":{"evaluationError":"liar","resourceRules":[{"verbs":["liar"]}],"nonResourceRules":[],)"
       R"("incomplete":true}})"}};
  auto admin = cluster().NewClient("admin");
  for (const Case& one : cases) {
    http::ClientRequest request{"POST", one.path, {}, one.body};
    request.headers.Set("Content-Type", "application/json");
    auto response = admin->Do(request, std::chrono::seconds(20));
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->status, 201) << response->body;
    EXPECT_EQ(response->body.find("liar"), std::string::npos) << response->body;
  }
}

TEST_F(Auth, WhoAmIAndCanI) {
  cluster().AddUser("dev", {"team"});
  EXPECT_NE(Kubectl({"auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}"}, "dev")
                .find(R"(["team","system:authenticated"])"),
            std::string::npos);
  Kubectl({"create", "ns", "rights"});
  Kubectl({"-n", "rights", "create", "rolebinding", "dev", "--clusterrole=view", "--user=dev"});
  EXPECT_EQ(Kubectl({"-n", "rights", "auth", "can-i", "list", "pods"}, "dev"), "yes\n");
  EXPECT_EQ(Kubectl({"-n", "rights", "auth", "can-i", "get", "secrets"}, "dev", 1), kNo);
  EXPECT_EQ(Kubectl({"auth", "can-i", "list", "pods", "-A"}, "dev", 1), kNo);
  EXPECT_EQ(Kubectl({"-n", "rights", "auth", "can-i", "list", "pods", "--as=dev"}), "yes\n");
  std::string list = Kubectl({"-n", "rights", "auth", "can-i", "--list"}, "dev");
  for (const char* said : {"deployments.apps", "selfsubjectreviews.authentication.k8s.io", "[/livez]"}) {
    EXPECT_NE(list.find(said), std::string::npos) << list;
  }
  EXPECT_EQ(list.find("secrets"), std::string::npos) << list;
}

TEST_F(Auth, NobodyGivesMoreThanHeHas) {
  Kubectl({"create", "ns", "give"});
  cluster().AddUser("boss", {});
  Kubectl({"-n", "give", "create", "rolebinding", "boss", "--clusterrole=admin", "--user=boss"});
  Kubectl({"-n", "give", "create", "role", "reader", "--verb=get", "--resource=pods"}, "boss");
  EXPECT_EQ(
      Kubectl({"-n", "give", "create", "role", "nodes", "--verb=get,list", "--resource=nodes"}, "boss", 1),
      "Error from server (Forbidden): roles.rbac.authorization.k8s.io \"nodes\" is forbidden: user \"boss\" "
      "(groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n"
      "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"list\"]}\n");
}

TEST_F(Auth, ProxiesSpeakForOthers) {
  std::string map = Kubectl({"-n", "kube-system", "wait", "--for=create",
                             "cm/extension-apiserver-authentication", "--timeout=30s"});
  EXPECT_EQ(Kubectl({"-n", "kube-system", "get", "cm", "extension-apiserver-authentication", "-o",
                     "jsonpath={.data.requestheader-allowed-names} {.data.requestheader-username-headers}"}),
            R"(["front-proxy"] ["X-Remote-User"])");
  auto client = [&](const std::string& name) {
    crypto::TestCertificate certificate = world_->proxies.Client(name, {});
    http::ClientOptions options;
    options.base_url = cluster().url();
    options.tls.ca_pem = cluster().pki().ca_pem();
    options.tls.certificate_pem = certificate.certificate_pem;
    options.tls.key_pem = certificate.key_pem;
    return std::move(*http::Client::Create(std::move(options)));
  };
  auto proxy = client("front-proxy"), other = client("other");
  EXPECT_EQ(WhoAmI({{"X-Remote-User", "carol"}}, proxy.get()), "carol");
  EXPECT_EQ(WhoAmI({}, proxy.get()), "401");  // the proxies' CA makes no users
  EXPECT_EQ(WhoAmI({{"X-Remote-User", "carol"}}, other.get()), "401");
  EXPECT_EQ(WhoAmI({{"X-Remote-User", "carol"}}), "401");
  auto admin = cluster().NewClient("admin");
  EXPECT_EQ(WhoAmI({{"X-Remote-User", "carol"}}, admin.get()), "admin");
}

TEST_F(Auth, Tokens) {
  EXPECT_EQ(WhoAmI({}), "401");  // anonymous requests are for health only
  EXPECT_EQ(WithToken(world_->provider.Token("cluster")), "corp:jane");
  EXPECT_EQ(WithToken(world_->provider.Token("another")), "401");
  EXPECT_EQ(WithToken("abcdef.0123456789abcdef"), "401");
  Kubectl({"-n", "kube-system", "create", "secret", "generic", "bootstrap-token-abcdef",
           "--type=bootstrap.kubernetes.io/token", "--from-literal=token-id=abcdef",
           "--from-literal=token-secret=0123456789abcdef",
           "--from-literal=usage-bootstrap-authentication=true"});
  EXPECT_EQ(WithToken("abcdef.0123456789abcdef"), "system:bootstrap:abcdef");
  EXPECT_EQ(WithToken("abcdef.0123456789abcdee"), "401");
  Kubectl({"create", "ns", "tokens"});
  Kubectl({"-n", "tokens", "create", "sa", "app"});
  Kubectl({"-n", "tokens", "create", "secret", "generic", "holder"});
  std::string token = Kubectl(
      {"-n", "tokens", "create", "token", "app", "--bound-object-kind=Secret", "--bound-object-name=holder"});
  if (token.back() == '\n') token.pop_back();
  EXPECT_EQ(WithToken(token), "system:serviceaccount:tokens:app");
  Kubectl({"-n", "tokens", "delete", "secret", "holder"});
  EXPECT_EQ(WithToken(token), "401");
}

TEST_F(Auth, PoliciesOfAFile) {
  cluster().AddUser("abe", {});
  Kubectl({"create", "ns", "abac"});
  EXPECT_EQ(Kubectl({"-n", "abac", "get", "pods"}, "abe"), "No resources found in abac namespace.\n");
  EXPECT_NE(
      Kubectl({"-n", "abac", "delete", "pod", "x"}, "abe", 1)
          .find("pods \"x\" is forbidden: User \"abe\" cannot delete resource \"pods\" in API group \"\" in "
                "the namespace \"abac\": No policy matched."),
      std::string::npos);
  EXPECT_EQ(Kubectl({"-n", "default", "auth", "can-i", "list", "pods"}, "abe", 1).substr(0, 2), "no");
}

// A legacy token of an old cluster: its last use is recorded, and a label invalidates it.
TEST_F(Auth, TokensOfSecrets) {
  Kubectl({"create", "ns", "legacy"});
  Kubectl({"-n", "legacy", "create", "sa", "old"});
  const std::string uid = Kubectl({"-n", "legacy", "get", "sa", "old", "-o", "jsonpath={.metadata.uid}"});
  const crypto::SigningKey key =
      crypto::SigningKey::FromPem(*ReadFile(cluster().pki().dir() + "/sa.key"))->front();
  const std::string prefix = "kubernetes.io/serviceaccount/";
  std::string token =
      EncodeBase64(json::serialize(json::object{{"alg", "RS256"}, {"kid", key.id()}}), Base64::kRawUrl) +
      "." +
      EncodeBase64(json::serialize(json::object{{"iss", "kubernetes/serviceaccount"},
                                                {"sub", "system:serviceaccount:legacy:old"},
                                                {prefix + "namespace", "legacy"},
                                                {prefix + "secret.name", "old-token"},
                                                {prefix + "service-account.name", "old"},
                                                {prefix + "service-account.uid", uid}}),
                   Base64::kRawUrl);
  token += "." + EncodeBase64(*key.Sign(token), Base64::kRawUrl);
  EXPECT_EQ(WithToken(token), "401");  // no Secret has it
  Kubectl({"create", "-f", "-"}, "admin", 0,
          "apiVersion: v1\nkind: Secret\nmetadata:\n  name: old-token\n  namespace: legacy\n  annotations: "
          "{kubernetes.io/service-account.name: old}\ntype: kubernetes.io/service-account-token\n"
          "stringData: {token: " +
              token + "}\n");
  EXPECT_EQ(WithToken(token), "system:serviceaccount:legacy:old");
  const std::string used = Kubectl({"-n", "legacy", "get", "secret", "old-token", "-o",
                                    "jsonpath={.metadata.labels.kubernetes\\.io/legacy-token-last-used}"});
  EXPECT_EQ(used.size(), 10u) << used;
  Kubectl(
      {"-n", "legacy", "label", "secret", "old-token", "kubernetes.io/legacy-token-invalid-since=" + used});
  SteadyTime deadline = SteadyTime::clock::now() + std::chrono::seconds(20);
  while (WithToken(token) != "401" && SteadyTime::clock::now() < deadline) {
  }
  EXPECT_EQ(WithToken(token), "401");
}

TEST_F(Auth, NodesSeeTheirOwn) {
  cluster().AddUser("system:node:n1", {"system:nodes"});
  Kubectl({"create", "ns", "own"});
  Kubectl({"-n", "own", "wait", "--for=create", "sa/default", "--timeout=30s"});
  Kubectl({"-n", "own", "create", "secret", "generic", "key", "--from-literal=a=b"});
  std::string refused = Kubectl({"-n", "own", "get", "secret", "key"}, "system:node:n1", 1);
  EXPECT_NE(refused.find("no relationship found between node 'n1' and this object"), std::string::npos)
      << refused;
  Kubectl({"create", "-f", "-"}, "admin", 0,
          "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\napiVersion: v1\nkind: Pod\n"
          "metadata: {name: web, namespace: own}\nspec:\n  nodeName: n1\n  containers:\n"
          "  - {name: c, image: busybox, envFrom: [{secretRef: {name: key}}]}\n");
  Kubectl({"-n", "own", "get", "secret", "key"}, "system:node:n1");
  Kubectl({"get", "pods", "-A", "--field-selector", "spec.nodeName=n1"}, "system:node:n1");
  refused = Kubectl({"get", "pods", "-A"}, "system:node:n1", 1);
  EXPECT_NE(refused.find("can only list/watch pods with spec.nodeName field selector"), std::string::npos);
  refused = Kubectl({"get", "nodes"}, "system:node:n1", 1);
  EXPECT_NE(refused.find("node 'n1' cannot read all nodes, only its own Node object"), std::string::npos);
}

TEST_F(Auth, NodesGetTokensOfTheirPods) {
  const std::string node = "system:node:n5";
  cluster().AddUser(node, {"system:nodes"});
  Kubectl({"create", "ns", "bound"});
  Kubectl({"-n", "bound", "wait", "--for=create", "sa/default", "--timeout=30s"});
  Kubectl(
      {"create", "-f", "-"}, "admin", 0,
      "apiVersion: v1\nkind: Pod\nmetadata: {name: mine, namespace: bound}\nspec:\n  nodeName: n5\n"
      "  containers: [{name: c, image: busybox}]\n  volumes:\n  - name: vault\n    projected:\n"
      "      sources: [{serviceAccountToken: {path: t, audience: vault}}]\n---\napiVersion: v1\nkind: Pod\n"
      "metadata: {name: other, namespace: bound}\nspec:\n  nodeName: n6\n"
      "  containers: [{name: c, image: busybox}]\n");
  auto uid = [&](const std::string& pod) {
    return Kubectl({"-n", "bound", "get", "pod", pod, "-o", "jsonpath={.metadata.uid}"});
  };
  auto ask = [&](std::vector<std::string> more, int code) {
    more.insert(more.begin(), {"-n", "bound", "create", "token", "default"});
    return Kubectl(more, node, code);
  };
  const std::string pod = "--bound-object-kind=Pod", mine = "--bound-object-name=mine";
  const std::string uid_of_mine = "--bound-object-uid=" + uid("mine");
  EXPECT_EQ(WithToken(ask({pod, mine, uid_of_mine}, 0)), "system:serviceaccount:bound:default");
  EXPECT_EQ(WithToken(ask({pod, mine, uid_of_mine, "--audience=vault"}, 0)), "401");  // for others
  struct {
    std::vector<std::string> more;
    const char* says;
  } rows[] = {
      {{}, "node requested token not bound to a pod"},
      {{pod, mine}, "node requested token with a pod binding without a uid"},
      {{pod, mine, uid_of_mine, "--audience=bank"},
       "audience \"bank\" not found in pod spec volume, system:node:n5 is not authorized to request tokens "
       "for "
       "this audience"},
      {{pod, mine, uid_of_mine, "--audience=vault", "--audience=bank"},
       "node may only request 0 or 1 audiences"},
      {{pod, "--bound-object-name=other", "--bound-object-uid=" + uid("other")},
       "node requested token bound to a pod scheduled on a different node"},
      {{pod, mine, "--bound-object-uid=x"},
       "the UID in the bound object reference (x) does not match the UID in record"},
  };
  for (const auto& row : rows) EXPECT_NE(ask(row.more, 1).find(row.says), std::string::npos) << row.says;
}

// Beyond the audiences of projected volumes: those of CSI drivers, and those that a role allows.
TEST_F(Auth, NodesGetTokensForDriversAndByRoles) {
  const std::string node = "system:node:n7";
  cluster().AddUser(node, {"system:nodes"});
  Kubectl({"create", "ns", "drivers"});
  Kubectl({"-n", "drivers", "wait", "--for=create", "sa/default", "--timeout=30s"});
  Kubectl({"create", "-f", "-"}, "admin", 0, R"(
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: secrets.example.com},
 spec: {tokenRequests: [{audience: vault}], volumeLifecycleModes: [Ephemeral]}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: disks.example.com},
 spec: {tokenRequests: [{audience: cloud}]}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: cinder.csi.openstack.org},
 spec: {tokenRequests: [{audience: openstack}]}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk},
 spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: disks.example.com, volumeHandle: a}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: old},
 spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], cinder: {volumeID: v}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: disk, namespace: drivers},
 spec: {volumeName: disk, storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: old, namespace: drivers},
 spec: {volumeName: old, storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: mine, namespace: drivers}, spec: {nodeName: n7,
 containers: [{name: c, image: busybox}], volumes: [
  {name: inline, csi: {driver: secrets.example.com}}, {name: gone, csi: {driver: gone.example.com}},
  {name: disk, persistentVolumeClaim: {claimName: disk}}, {name: old, persistentVolumeClaim: {claimName: old}},
  {name: missing, persistentVolumeClaim: {claimName: missing}}]}}
)");
  const std::string uid = Kubectl({"-n", "drivers", "get", "pod", "mine", "-o", "jsonpath={.metadata.uid}"});
  const auto ask = [&](const std::string& audience, int code) {
    return Kubectl({"-n", "drivers", "create", "token", "default", "--bound-object-kind=Pod",
                    "--bound-object-name=mine", "--bound-object-uid=" + uid, "--audience=" + audience},
                   node, code);
  };
  for (const char* audience : {"vault", "cloud", "openstack"}) EXPECT_NE(ask(audience, 0), "") << audience;
  EXPECT_NE(ask("registry", 1).find("audience \"registry\" not found in pod spec volume"), std::string::npos);
  // A role names the audience as its resource, and may name accounts.
  Kubectl({"create", "-f", "-"}, "admin", 0, R"(
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: pulls}, rules: [
 {apiGroups: [""], resources: [registry], resourceNames: [default], verbs: [request-serviceaccounts-token-audience]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: pulls},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pulls},
 subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]}
)");
  EXPECT_NE(ask("registry", 0), "");
  EXPECT_NE(ask("bank", 1).find("audience \"bank\" not found in pod spec volume"), std::string::npos);
}

// A certificate request from creation to use of the certificate; the test is the signer.
TEST_F(Auth, Certificates) {
  const std::string dir = cluster().pki().dir();
  auto request = [&](const std::string& name, const std::string& subject) {
    Output made =
        RunProgram({"openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", dir + "/" + name + ".pem", "-subj", subject});
    EXPECT_EQ(made.code, 0) << made.err;
    return made.out;
  };
  auto object = [](const std::string& name, const std::string& signer, const std::string& pem,
                   const std::string& usage = "client auth") {
    std::string encoded = EncodeBase64(pem, Base64::kRawUrl);
    for (char& c : encoded) c = c == '-' ? '+' : c == '_' ? '/' : c;
    encoded.append((4 - encoded.size() % 4) % 4, '=');
    return json::serialize(json::object{
        {"apiVersion", "certificates.k8s.io/v1"},
        {"kind", "CertificateSigningRequest"},
        {"metadata", {{"name", name}}},
        {"spec", {{"request", encoded}, {"signerName", signer}, {"usages", json::array{usage}}}}});
  };
  const std::string client = "kubernetes.io/kube-apiserver-client";
  const std::string pem = request("ann", "/O=people/CN=ann");
  Kubectl({"create", "-f", "-"}, "admin", 0, object("ann", client, pem));
  cluster().AddUser("clerk", {});
  Kubectl({"create", "clusterrole", "clerk", "--verb=get,update,patch",
           "--resource=certificatesigningrequests,certificatesigningrequests/approval"});
  Kubectl({"create", "clusterrolebinding", "clerk", "--clusterrole=clerk", "--user=clerk"});
  EXPECT_NE(Kubectl({"certificate", "approve", "ann"}, "clerk", 1)
                .find("user not permitted to approve requests with signerName \"" + client + "\""),
            std::string::npos);
  Kubectl({"create", "clusterrolebinding", "approver",
           "--clusterrole=system:certificates.k8s.io:kube-apiserver-client-approver", "--user=clerk"});
  Kubectl({"certificate", "approve", "ann"}, "clerk");
  const std::string issued = cluster().pki().Sign(pem);
  json::object status = json::parse(object("ann", client, issued)).at("spec").as_object();
  Kubectl({"patch", "csr", "ann", "--subresource=status", "--type=merge", "-p",
           json::serialize(json::object{{"status", {{"certificate", status.at("request")}}}})});
  EXPECT_NE(Kubectl({"get", "csr", "ann"}).find("Approved,Issued"), std::string::npos);

  http::ClientOptions options;
  options.base_url = cluster().url();
  options.tls.ca_pem = cluster().pki().ca_pem();
  options.tls.certificate_pem = issued;
  options.tls.key_pem = *ReadFile(dir + "/ann.pem");
  EXPECT_EQ(WhoAmI({}, http::Client::Create(std::move(options))->get()), "ann");

  Kubectl({"create", "-f", "-"}, "admin", 0, object("bill", client, request("bill", "/CN=bill")));
  Kubectl({"certificate", "deny", "bill"}, "clerk");
  EXPECT_NE(Kubectl({"certificate", "approve", "bill"}, "clerk", 1).find("already Denied"),
            std::string::npos);

  cluster().AddUser("system:node:n1", {"system:nodes"});
  const std::string kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
  struct {
    const char* user;
    std::string signer, subject, says;
  } rows[] = {
      {"admin", client, "/O=system:masters/CN=x",
       "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"},
      {"system:node:n1", kubelet, "/O=system:nodes/CN=system:node:n2",
       "can only create a node CSR with CN=system:node:n1"},
      {"system:node:n1", "kubernetes.io/kubelet-serving", "/O=system:nodes/CN=system:node:n2",
       "can only create a node CSR with CN=system:node:n1"},
      {"admin", "kubernetes.io/legacy-unknown", "/CN=x",
       "the legacy signerName is not allowed via this API version"},
  };
  for (const auto& row : rows) {
    const std::string said = Kubectl({"create", "-f", "-"}, row.user, 1,
                                     object("refused", row.signer, request("refused", row.subject)));
    EXPECT_NE(said.find(row.says), std::string::npos) << said;
  }
  Kubectl({"create", "-f", "-"}, "system:node:n1", 0,
          object("own", kubelet, request("own", "/O=system:nodes/CN=system:node:n1")));
}

}  // namespace
}  // namespace keelson::apiserver
