// Both ways with kubeadm: nodectl joins a cluster whose objects are kubeadm's, and a cluster of nodectl has what `kubeadm join`
// looks for. With upstream's kubeadm in the directory $KEELSON_UPSTREAM_BIN it takes part itself.
#include <gmock/gmock.h>

#include <cstdlib>

#include "lib/base/file.h"
#include "lib/crypto/certificate_checks.h"
#include "tests/nodectl/machine.h"

namespace keelson::ctl {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "abcdef.0123456789abcdef";

// What kubeadm does with cluster-info, by other means than nodectl's: the detached signature (RFC 7515, appendix F) is
// HMAC-SHA-256 with the token's secret over the kubeconfig's text.
constexpr char kVerifySignature[] = R"py(
import base64, hashlib, hmac, json, ssl, sys, urllib.request
address, token = sys.argv[1:]
url = "https://" + address + ":6443/api/v1/namespaces/kube-public/configmaps/cluster-info"
# Anybody may read it, before anything is trusted.
data = json.load(urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=20))["data"]
identifier, secret = token.split(".")
head, body, signature = data["jws-kubeconfig-" + identifier].split(".")
bytes_of = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
assert body == "", "the signature is not detached"
assert json.loads(bytes_of(head)) == {"alg": "HS256", "kid": identifier}, bytes_of(head)
payload = base64.urlsafe_b64encode(data["kubeconfig"].encode()).rstrip(b"=")
expected = hmac.new(secret.encode(), head.encode() + b"." + payload, hashlib.sha256).digest()
assert hmac.compare_digest(bytes_of(signature), expected), "wrong signature"
print(data["kubeconfig"])
)py";

class Interop : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    if (std::string missing = EnterNetwork(); !missing.empty()) GTEST_SKIP() << missing;
    for (const Machine* machine : {&control_, &worker_}) {
      for (const char* unit : {"kubelet", "kube-proxy", "kube-cni"}) machine->AddUnit(unit);
    }
    control_.AddUnit("kube-controlplane", KEELSON_CONTROLPLANE);
    worker_.AddUnit("kubelet", KEELSON_KUBELET);
  }
  void Init(const std::string& skipped) {
    const Output init = control_.Nodectl({"init", "--rootfs", control_.Path(""), "--node-name=control-1",
                                          "--ignore-preflight-errors=all", "--skip-phases=" + skipped,
                                          "--cri-socket=unix:///run/none.sock", "--token", kToken});
    ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");
  }
  std::string Pin() const {
    return "sha256:" + crypto::PublicKeySha256(control_.Text("/etc/kubernetes/pki/ca.crt")).value_or("");
  }
  void Apply(const std::string& file) {
    const Output done = control_.Kubectl({"create", "-f", file});
    ASSERT_EQ(done.code, 0) << file << ": " << done.err;
  }
  void JoinAndExpectAStockNode() {
    const Output join = worker_.Nodectl(
        {"join", std::string(kAddress) + ":6443", "--rootfs", worker_.Path(""), "--node-name=worker-1",
         "--ignore-preflight-errors=all", "--cri-socket=unix:///run/none.sock", "--token", kToken,
         "--discovery-token-ca-cert-hash", Pin()});
    ASSERT_EQ(join.code, 0) << join.out << join.err << worker_.UnitLog("kubelet");
    EXPECT_TRUE(worker_.Has("/var/lib/kubelet/pki/kubelet-client-current.pem"));
    EXPECT_THAT(worker_.Text("/var/lib/kubelet/config.yaml"),
                AllOf(HasSubstr("staticPodPath: /etc/kubernetes/manifests"),
                      HasSubstr("containerRuntimeEndpoint: unix:///run/none.sock")));
    // The DaemonSets of such a cluster do their work.
    EXPECT_THAT(worker_.SystemctlLog(),
                AllOf(Not(HasSubstr("restart kube-proxy")), Not(HasSubstr("restart kube-cni"))));
    EXPECT_FALSE(worker_.Has("/etc/kubernetes/kube-proxy.env"));
  }

  Machine control_{"control-1"}, worker_{"worker-1"};
};

TEST_F(Interop, NodectlJoinsAClusterWithKubeadmsObjects) {
  if (IsSkipped()) return;
  Init("mark-control-plane,upload-config,bootstrap-token,addon");
  for (const char* file : {"kubeadm-config.yaml", "kubelet-config.yaml", "rbac.yaml"}) {
    Apply(std::string(KEELSON_KUBEADM_FILES) + "/objects/" + file);
  }
  const std::string ca = control_.Text("/etc/kubernetes/pki/ca.crt");
  const Output encoded = apiserver::RunProgram({"base64", "-w0"}, ca);
  ASSERT_EQ(encoded.code, 0);
  ASSERT_TRUE(
      WriteFile(control_.Path("/cluster-info.yaml"),
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-info, namespace: kube-public}\n"
                "data:\n  kubeconfig: |\n    apiVersion: v1\n    clusters:\n    - cluster:\n"
                "        certificate-authority-data: " +
                    encoded.out + "\n        server: https://" + kAddress +
                    ":6443\n      name: \"\"\n    contexts: null\n    current-context: \"\"\n"
                    "    kind: Config\n    preferences: {}\n    users: null\n"));
  Apply(control_.Path("/cluster-info.yaml"));
  const Output token = control_.Nodectl(
      {"token", "create", kToken, "--kubeconfig", control_.Path("/etc/kubernetes/admin.conf")});
  ASSERT_EQ(token.code, 0) << token.err;
  JoinAndExpectAStockNode();
}

TEST_F(Interop, KubeadmFindsWhatItLooksFor) {
  if (IsSkipped()) return;
  Init("mark-control-plane");
  Output verified;
  ASSERT_TRUE(Eventually([&] {
    verified = apiserver::RunProgram({"python3", "-c", kVerifySignature, kAddress, kToken});
    return verified.code == 0;
  })) << verified.err;
  EXPECT_THAT(verified.out, AllOf(HasSubstr("server: https://192.0.2.1:6443"),
                                  HasSubstr("certificate-authority-data: "), Not(HasSubstr("token"))));
  // Then it reads both ConfigMaps and Nodes, and asks for a certificate, with the token.
  const auto may = [&](std::vector<std::string> what) {
    std::vector<std::string> command = {
        "kubectl",
        "--kubeconfig=/dev/null",
        std::string("--server=https://") + kAddress + ":6443",
        "--certificate-authority=" + control_.Path("/etc/kubernetes/pki/ca.crt"),
        std::string("--token=") + kToken,
        "auth",
        "can-i"};
    command.insert(command.end(), what.begin(), what.end());
    return apiserver::RunProgram(command).out;
  };
  for (const char* map : {"configmap/kubeadm-config", "configmap/kubelet-config"}) {
    EXPECT_EQ(may({"get", map, "-n", "kube-system"}), "yes\n") << map;
  }
  EXPECT_EQ(may({"get", "nodes"}), "yes\n");
  EXPECT_EQ(may({"create", "certificatesigningrequests.certificates.k8s.io"}), "yes\n");
  EXPECT_EQ(may({"get", "configmap/extension-apiserver-authentication", "-n", "kube-system"}), "no\n");
}

TEST_F(Interop, UpstreamsKubeadm) {
  if (IsSkipped()) return;
  const char* directory = std::getenv("KEELSON_UPSTREAM_BIN");
  if (!directory || !PathExists(std::string(directory) + "/kubeadm")) {
    GTEST_SKIP() << "no upstream kubeadm: KEELSON_UPSTREAM_BIN names a directory that has it";
  }
  const std::string kubeadm = std::string(directory) + "/kubeadm";
  Init("mark-control-plane,upload-config,bootstrap-token,addon");
  const std::string admin = control_.Path("/etc/kubernetes/admin.conf"),
                    config = control_.Path("/kubeadm.yaml");
  ASSERT_TRUE(WriteFile(
      config,
      std::string("apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: "
                  "{advertiseAddress: 192.0.2.1}\nbootstrapTokens: [{token: ") +
          kToken +
          "}]\nnodeRegistration: {name: control-1, criSocket: \"unix:///run/none.sock\"}\n---\napiVersion: "
          "kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.36.2\nnetworking: "
          "{podSubnet: 10.244.0.0/16}\n"));
  for (const std::vector<std::string>& phase :
       std::vector<std::vector<std::string>>{{"upload-config", "all"}, {"bootstrap-token"}}) {
    std::vector<std::string> command = {kubeadm, "init", "phase"};
    command.insert(command.end(), phase.begin(), phase.end());
    command.insert(command.end(), {"--config", config, "--kubeconfig", admin});
    const Output done = apiserver::RunProgram(command);
    ASSERT_EQ(done.code, 0) << phase[0] << done.out << done.err;
  }
  JoinAndExpectAStockNode();
  const Output join = apiserver::RunProgram(
      {kubeadm, "join", std::string(kAddress) + ":6443", "--token", kToken, "--discovery-token-ca-cert-hash",
       Pin(), "--node-name=worker-2", "--cri-socket=unix:///run/none.sock", "--ignore-preflight-errors=all",
       "--dry-run"},
      "", std::chrono::minutes(2));
  EXPECT_EQ(join.code, 0) << join.out << join.err;
}

}  // namespace
}  // namespace keelson::ctl
