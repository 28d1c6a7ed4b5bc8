// The three programs as kubeadm starts them: the command lines and files of its manifests, on an external
// etcd.
#include <gmock/gmock.h>

#include <sstream>

#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/base/free_port.h"
#include "lib/base/testing/eventually.h"
#include "lib/crypto/certificates.h"
#include "lib/crypto/signing_key.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEtc[] = "/etc/kubernetes";

size_t Count(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++out;
  return out;
}

class Kubeadm : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    etcd_ = std::make_unique<etcd::TestEtcd>();
    const auto free_port = FreePort();
    ASSERT_TRUE(free_port) << free_port.error().message();
    port_ = std::to_string(*free_port);
    WriteFiles();
  }

  void WriteFiles() {
    const etcd::ClientOptions store = etcd_->supervisor().tls_client_options();
    etcd_url_ = store.endpoints.at(0);
    ASSERT_TRUE(MakeDirs(dir_ + "/pki/etcd", 0755));
    Write("pki/ca.crt", pki_.ca_pem());
    Write("pki/front-proxy-ca.crt", pki_.ca_pem());
    Write("pki/etcd/ca.crt", store.ca_pem);
    Write("pki/apiserver-etcd-client.crt", store.certificate_pem);
    Write("pki/apiserver-etcd-client.key", store.key_pem);
    Write("pki/apiserver.crt", ReadFile(pki_.server_cert_file()).value_or(""));
    Write("pki/apiserver.key", ReadFile(pki_.server_key_file()).value_or(""));
    WritePair("pki/apiserver-kubelet-client", "kube-apiserver-kubelet-client", {});
    WritePair("pki/front-proxy-client", "front-proxy-client", {});
    const Result<std::string> signer = crypto::NewPrivateKey();
    Write("pki/signer.key", *signer);
    Write("pki/signer.crt",
          *crypto::NewSelfSigned(*signer, {.common_name = "kubernetes"}, std::chrono::hours(1)));
    const Result<crypto::SigningKey> key = crypto::SigningKey::GenerateRsa();
    Write("pki/sa.key", *key->PrivatePem());
    Write("pki/sa.pub", *key->PrivatePem());
    WriteConf("admin", "kubernetes-admin", {"system:masters"});
    WriteConf("controller-manager", "system:kube-controller-manager", {});
    WriteConf("scheduler", "system:kube-scheduler", {});
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(dir_ + "/" + name, text, 0600)) << name;
  }
  void WritePair(const std::string& stem, const std::string& user, const std::vector<std::string>& groups) {
    const crypto::TestCertificate certificate = pki_.Client(user, groups);
    Write(stem + ".crt", certificate.certificate_pem);
    Write(stem + ".key", certificate.key_pem);
  }
  void WriteConf(const std::string& name, const std::string& user, const std::vector<std::string>& groups) {
    WritePair(name, user, groups);
    const std::string stem = dir_ + "/" + name;
    Write(name + ".conf",
          "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" +
              Url() + "', certificate-authority: " + pki_.ca_file() +
              "}}]\nusers: [{name: u, user: {client-certificate: " + stem + ".crt, client-key: " + stem +
              ".key}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n");
  }

  // The manifest's arguments, with the paths of this test.
  std::unique_ptr<Process> Start(const std::string& program, const std::string& role,
                                 std::vector<std::string> more) {
    std::istringstream in(ReadFile(KEELSON_KUBEADM "/" + program + ".yaml").value_or(""));
    std::vector<std::string> flags = {"--roles=" + role};
    for (std::string line; std::getline(in, line);) {
      constexpr std::string_view kItem = "    - --";
      if (!line.starts_with(kItem)) continue;
      std::string flag = line.substr(kItem.size() - 2);
      if (const size_t at = flag.find(kEtc); at != std::string::npos) flag.replace(at, sizeof kEtc - 1, dir_);
      flags.push_back(flag);
    }
    EXPECT_GT(flags.size(), 4u) << program;
    flags.insert(flags.end(), more.begin(), more.end());  // the last value counts
    return std::make_unique<Process>(dir_ + "/" + program + ".log", std::move(flags));
  }
  std::string Url() const { return "https://127.0.0.1:" + port_; }
  Output Kubectl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"kubectl", "--kubeconfig", dir_ + "/admin.conf", "--cache-dir", dir_ + "/cache"});
    return apiserver::RunProgram(arguments);
  }

  crypto::TestPki pki_;
  const std::string dir_ = pki_.dir() + "/kubernetes";
  std::unique_ptr<etcd::TestEtcd> etcd_;
  std::string port_, etcd_url_;
};

TEST_F(Kubeadm, StartsTheControlPlane) {
  const auto server =
      Start("kube-apiserver", "apiserver", {"--secure-port=" + port_, "--etcd-servers=" + etcd_url_});
  ASSERT_TRUE(Eventually([&] { return Kubectl({"get", "--raw", "/readyz"}).out == "ok"; })) << server->Log();
  EXPECT_THAT(server->Log(), Not(HasSubstr("Flag has no effect")));
  EXPECT_EQ(Kubectl({"get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[*].addresses[*].ip}"}).out,
            "192.0.2.10");
  // Privileged pods are allowed, and beta APIs are off.
  EXPECT_EQ(Kubectl({"create", "serviceaccount", "default"}).code, 0);
  EXPECT_THAT(Kubectl({"api-versions"}).out, Not(HasSubstr("certificates.k8s.io/v1beta1")));

  const auto controllers =
      Start("kube-controller-manager", "controllers",
            {"--secure-port=0", "--cluster-signing-cert-file=" + dir_ + "/pki/signer.crt",
             "--cluster-signing-key-file=" + dir_ + "/pki/signer.key"});
  EXPECT_TRUE(Eventually([&] {
    return Kubectl({"get", "configmap", "kube-root-ca.crt"}).code == 0;
  })) << controllers->Log();
  const auto scheduler = Start("kube-scheduler", "scheduler", {"--secure-port=0"});
  EXPECT_TRUE(Eventually([&] {
    return Kubectl({"-n", "kube-system", "get", "lease", "kube-scheduler"}).code == 0;
  })) << scheduler->Log();
  // Its pages trust the clients of the cluster, though no flag names their CA.
  EXPECT_TRUE(Eventually([&] {
    return apiserver::RunProgram({"curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "--cert",
                                  dir_ + "/admin.crt", "--key", dir_ + "/admin.key",
                                  scheduler->url() + "/metrics"})
               .out == "200";
  })) << scheduler->Log();
  EXPECT_EQ(scheduler->End(SIGTERM), 0);
  EXPECT_EQ(controllers->End(SIGTERM), 0);
  EXPECT_EQ(server->End(SIGTERM), 0);
}

// What flags do beyond those of kubeadm.
TEST_F(Kubeadm, FlagsOfTheApiServerHaveTheirEffect) {
  const auto server =
      Start("kube-apiserver", "apiserver",
            {"--secure-port=" + port_, "--etcd-servers=" + etcd_url_, "--event-ttl=5m",
             "--storage-media-type=application/json", "--allow-privileged=false",
             "--runtime-config=certificates.k8s.io/v1beta1=true", "--logging-format=json",
             "--watch-cache=false", "--advertise-address=127.0.0.1",
             "--tls-sni-cert-key=" + pki_.server_cert_file() + "," + pki_.server_key_file(),
             "--tls-curve-preferences=23,29", "--goaway-chance=0.02", "--permit-port-sharing",
             "--http2-max-streams-per-connection=100", "--etcd-prefix=blue", "--anonymous-auth=false"});
  ASSERT_TRUE(Eventually([&] { return Kubectl({"get", "--raw", "/readyz"}).out == "ok"; })) << server->Log();
  EXPECT_THAT(server->Log(), HasSubstr(R"("msg":"A flag without effect","v":0,"flag":"--watch-cache")"));
  EXPECT_EQ(Count(server->Log(), "A flag without effect"), 1u) << server->Log();
  EXPECT_THAT(Kubectl({"api-versions"}).out, HasSubstr("certificates.k8s.io/v1beta1"));
  EXPECT_EQ(
      apiserver::RunProgram({"curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", Url() + "/version"}).out,
      "401");
  EXPECT_NE(Kubectl({"get", "endpoints", "kubernetes", "-o", "jsonpath={.subsets[*].addresses[*].ip}"}).out,
            "127.0.0.1")
      << "nobody else is reached there";
  EXPECT_EQ(Kubectl({"create", "serviceaccount", "default"}).code, 0);
  const Output privileged = Kubectl({"run", "p", "--image=i", "--privileged", "--restart=Never"});
  EXPECT_THAT(privileged.err,
              HasSubstr("spec.containers[0].securityContext.privileged: Forbidden: disallowed by "
                        "cluster policy"));
  ASSERT_EQ(Kubectl({"create", "configmap", "c", "--from-literal=a=b"}).code, 0);
  EXPECT_EQ(Kubectl({"get", "configmap", "c", "-o", "jsonpath={.data.a}"}).out, "b");
  etcd::Client store(etcd_->supervisor().client_options());
  const auto stored = store.Range("/blue/configmaps/default/c", {}, {});
  ASSERT_TRUE(stored && stored->kvs.size() == 1);
  etcd::RangeOptions elsewhere;
  elsewhere.end = etcd::PrefixEnd("/registry");
  const auto none = store.Range("/registry", elsewhere, {});
  EXPECT_TRUE(none && none->kvs.empty());
  EXPECT_EQ(Kubectl({"delete", "configmap", "c"}).code, 0);
  EXPECT_EQ(Kubectl({"get", "configmap", "c", "--ignore-not-found"}).out, "");
  EXPECT_THAT(stored->kvs[0].value, HasSubstr(R"("kind":"ConfigMap","apiVersion":"v1")"));
  EXPECT_EQ(server->End(SIGTERM), 0);
}

}  // namespace
}  // namespace keelson::controlplane
