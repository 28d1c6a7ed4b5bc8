// nodectl makes a real control plane, and a real kubelet joins it; both on machines below directories.
#include <gmock/gmock.h>

#include "lib/base/file.h"
#include "lib/crypto/certificate_checks.h"
#include "lib/crypto/certificates.h"
#include "tests/nodectl/machine.h"

namespace keelson::ctl {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Nodectl : public testing::Test {
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
  std::vector<std::string> InitCommand() const {
    // No kubelet registers the node: there is no container runtime.
    return {"init",
            "--rootfs",
            control_.Path(""),
            "--node-name=control-1",
            "--ignore-preflight-errors=all",
            "--skip-phases=mark-control-plane",
            "--cri-socket=unix:///run/none.sock"};
  }
  std::vector<std::string> JoinCommand(const std::string& token, const std::string& pin) const {
    return {"join",
            std::string(kAddress) + ":6443",
            "--rootfs",
            worker_.Path(""),
            "--node-name=worker-1",
            "--ignore-preflight-errors=all",
            "--cri-socket=unix:///run/none.sock",
            "--token",
            token,
            "--discovery-token-ca-cert-hash",
            pin};
  }
  std::string NewToken() {
    const Output made =
        control_.Nodectl({"token", "create", "--kubeconfig", control_.Path("/etc/kubernetes/admin.conf")});
    EXPECT_EQ(made.code, 0) << made.err;
    return made.out.substr(0, made.out.find('\n'));
  }
  std::string Pin() const {
    return "sha256:" + crypto::PublicKeySha256(control_.Text("/etc/kubernetes/pki/ca.crt")).value_or("");
  }
  std::string Field(const std::vector<std::string>& what, const std::string& path) {
    std::vector<std::string> arguments = {"get"};
    arguments.insert(arguments.end(), what.begin(), what.end());
    arguments.insert(arguments.end(), {"-o", "jsonpath=" + path});
    const Output output = control_.Kubectl(arguments);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }

  Machine control_{"control-1"}, worker_{"worker-1"};
};

TEST_F(Nodectl, RefusesAMachineThatIsNotFit) {
  const Output output = control_.Nodectl({"init", "--rootfs", control_.Path("")});
  EXPECT_EQ(output.code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: "
                                          "/proc/sys/net/ipv4/ip_forward does not exist"),
                                HasSubstr("[ERROR CRI]: container runtime is not running"),
                                HasSubstr("preflight checks failed")));
  EXPECT_FALSE(control_.Has("/etc"));
  EXPECT_FALSE(control_.Has("/var"));
}

TEST_F(Nodectl, MakesAClusterThatANodeJoins) {
  const Output init = control_.Nodectl(InitCommand());
  ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");
  EXPECT_THAT(init.out, HasSubstr("nodectl join 192.0.2.1:6443 --token "));
  EXPECT_THAT(init.out, HasSubstr("--discovery-token-ca-cert-hash " + Pin()));

  // The administrator, by kubeadm's group, and what kubeadm leaves in a cluster.
  EXPECT_EQ(control_.Kubectl({"auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"}).out,
            "kubernetes-admin");
  EXPECT_EQ(Field({"clusterrolebinding", "kubeadm:cluster-admins"}, "{.roleRef.name} {.subjects[0].name}"),
            "cluster-admin kubeadm:cluster-admins");
  EXPECT_THAT(Field({"-n", "kube-system", "configmap", "kubeadm-config"}, "{.data.ClusterConfiguration}"),
              HasSubstr("kind: ClusterConfiguration"));
  EXPECT_THAT(Field({"-n", "kube-system", "configmap", "kubelet-config"}, "{.data.kubelet}"),
              HasSubstr("rotateCertificates: true"));
  EXPECT_EQ(Field({"-n", "kube-system", "service", "kube-dns"}, "{.spec.clusterIP}"), "10.96.0.10");
  EXPECT_EQ(Field({"-n", "kube-system", "configmap", "keelson-config"}, "{.data.nodeUnits}"),
            "kube-proxy,kube-cni");
  EXPECT_THAT(control_.SystemctlLog(), HasSubstr("--no-block restart kube-cni.service"));

  // The mark of the control plane, once there is a node.
  ASSERT_TRUE(WriteFile(control_.Path("/node.yaml"),
                        R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"control-1"}})"));
  const Output node = control_.Kubectl({"create", "-f", control_.Path("/node.yaml")});
  ASSERT_EQ(node.code, 0) << node.err;
  const Output mark = control_.Nodectl({"init", "phase", "mark-control-plane", "--rootfs", control_.Path(""),
                                        "--node-name=control-1", "--cri-socket=unix:///run/none.sock"});
  ASSERT_EQ(mark.code, 0) << mark.err;
  EXPECT_THAT(
      Field({"node", "control-1"}, "{.metadata.labels} {.spec.taints}"),
      AllOf(HasSubstr("node-role.kubernetes.io/control-plane"), HasSubstr("\"effect\":\"NoSchedule\"")));

  // Tokens: in a table, and who has a wrong one or another CA's pin is not served.
  const std::string token = NewToken();
  const Output list =
      control_.Nodectl({"token", "list", "--kubeconfig", control_.Path("/etc/kubernetes/admin.conf")});
  EXPECT_THAT(list.out, AllOf(HasSubstr("TOKEN "), HasSubstr(token), HasSubstr("23h"),
                              HasSubstr("system:bootstrappers:kubeadm:default-node-token")));
  std::vector<std::string> wrong = JoinCommand(token, "sha256:" + std::string(64, '0'));
  const Output pinned = worker_.Nodectl(wrong);
  EXPECT_EQ(pinned.code, 1);
  EXPECT_THAT(pinned.err, HasSubstr("cluster CA found in cluster-info ConfigMap is invalid"));
  EXPECT_FALSE(worker_.Has("/etc/kubernetes/bootstrap-kubelet.conf"));

  const Output join = worker_.Nodectl(JoinCommand(token, Pin()));
  ASSERT_EQ(join.code, 0) << join.out << join.err << worker_.UnitLog("kubelet");
  EXPECT_THAT(join.out, HasSubstr("This node has joined the cluster:"));
  EXPECT_FALSE(worker_.Has("/etc/kubernetes/bootstrap-kubelet.conf"));
  const std::string pem = worker_.Text("/var/lib/kubelet/pki/kubelet-client-current.pem");
  const auto certificate = crypto::InspectCertificate(pem);
  ASSERT_TRUE(certificate);
  EXPECT_EQ(certificate->subject.common_name, "system:node:worker-1");
  EXPECT_THAT(certificate->subject.organizations, ElementsAre("system:nodes"));
  EXPECT_TRUE(crypto::IsSignedBy(pem, control_.Text("/etc/kubernetes/pki/ca.crt")));
  EXPECT_THAT(worker_.Text("/etc/kubernetes/kube-cni.env"), HasSubstr("--cluster-cidr=10.244.0.0/16"));
  EXPECT_THAT(worker_.Text("/etc/kubernetes/kube-proxy.env"), HasSubstr("--cluster-dns-address=10.96.0.10"));
  EXPECT_THAT(worker_.SystemctlLog(), HasSubstr("--no-block restart kube-proxy.service"));

  // The node's certificate may do what kube-proxy and kube-cni do.
  for (const char* resource : {"services", "endpointslices.discovery.k8s.io", "nodes"}) {
    EXPECT_EQ(worker_.Kubectl({"auth", "can-i", "list", resource, "-A"}, "kubelet.conf").out, "yes\n")
        << resource;
  }
  EXPECT_THAT(worker_.Kubectl({"auth", "can-i", "list", "secrets", "-A"}, "kubelet.conf").out,
              StartsWith("no"));

  const Output gone = control_.Nodectl(
      {"token", "delete", token, "--kubeconfig", control_.Path("/etc/kubernetes/admin.conf")});
  EXPECT_EQ(gone.out, "bootstrap token \"" + token.substr(0, 6) + "\" deleted\n") << gone.err;
}

TEST_F(Nodectl, GoesOnAfterKillsAndResetLeavesNothing) {
  for (const Machine* machine : {&control_, &worker_}) {
    for (const char* unit : {"keelson-csi-local", "keelson-csi-controller"}) machine->AddUnit(unit);
  }
  for (const char* line :
       {"[certs]", "[kubeconfig]", "[control-plane]", "[kubelet-start]", "[wait-control-plane]",
        "[control-plane-check]", "[upload-config]", "[bootstrap-token]", "[addons]", "[kube-cni]", "[csi]"}) {
    EXPECT_TRUE(control_.NodectlKilledAt(InitCommand(), line)) << line;
    EXPECT_TRUE(control_.Has("/var/lib/keelson/nodectl-unfinished")) << line;
  }
  const Output init = control_.Nodectl(InitCommand());
  ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");
  EXPECT_FALSE(control_.Has("/var/lib/keelson/nodectl-unfinished"));
  EXPECT_THAT(Field({"-n", "kube-system", "secrets", "--field-selector=type=bootstrap.kubernetes.io/token"},
                    "{.items[*].metadata.name}"),
              Not(HasSubstr(" ")))
      << "one token, however often init began";

  EXPECT_EQ(Field({"csidriver", "local.csi.keelson.dev"}, "{.spec.attachRequired} {.spec.storageCapacity}"),
            "false true");
  EXPECT_EQ(Field({"storageclass", "local"}, "{.provisioner}"), "local.csi.keelson.dev");
  EXPECT_EQ(Field({"-n", "kube-system", "configmap", "keelson-config"},
                  "{.data.nodeUnits} {.data.optionalNodeUnits}"),
            "kube-proxy,kube-cni keelson-csi-local,keelson-csi-controller");

  const std::string token = NewToken();
  for (const char* line :
       {"[discovery]", "[kubelet-start]", "[kubelet-start] Waiting", "[kube-cni]", "[csi]"}) {
    // The last one may come late: the kubelet has its certificate first.
    EXPECT_TRUE(worker_.NodectlKilledAt(JoinCommand(token, Pin()), line))
        << line << worker_.UnitLog("kubelet");
  }
  const Output join = worker_.Nodectl(JoinCommand(token, Pin()));
  ASSERT_EQ(join.code, 0) << join.out << join.err << worker_.UnitLog("kubelet");

  EXPECT_THAT(worker_.Text("/etc/kubernetes/csi.env"), HasSubstr("KUBE_NODE_NAME=worker-1\n"));
  EXPECT_THAT(worker_.SystemctlLog(), AllOf(HasSubstr("--no-block restart keelson-csi-local.service"),
                                            HasSubstr("--no-block restart keelson-csi-controller.service")));
  EXPECT_EQ(worker_.Kubectl({"auth", "can-i", "create", "persistentvolumes"}, "kubelet.conf").out, "yes\n")
      << "as keelson-csi-controller, which has the kubelet's certificate";
  EXPECT_THAT(worker_.Text("/etc/kubernetes/csi-controller.conf"),
              HasSubstr("client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem"));
  EXPECT_THAT(worker_.Kubectl({"auth", "can-i", "get", "secrets", "-A"}, "kubelet.conf").out,
              StartsWith("no"));

  const std::string volume = "/var/lib/keelson-csi-local/volumes/data";
  ASSERT_TRUE(MakeDirs(worker_.Path("/var/lib/keelson-csi-local/volumes")));
  ASSERT_TRUE(WriteFile(worker_.Path(volume), "data"));
  const Output kept =
      worker_.Nodectl({"reset", "--force", "--rootfs", worker_.Path(""), "--ignore-preflight-errors=all"});
  ASSERT_EQ(kept.code, 0) << kept.out << kept.err;
  EXPECT_TRUE(worker_.Has(volume));
  for (const Machine* machine : {&worker_, &control_}) {
    const Output reset = machine->Nodectl({"reset", "--force", "--rootfs", machine->Path(""),
                                           "--ignore-preflight-errors=all", "--remove-local-volumes"});
    ASSERT_EQ(reset.code, 0) << reset.out << reset.err;
    EXPECT_LT(machine->UnitPid("kubelet"), 0);
    EXPECT_LT(machine->UnitPid("kube-controlplane"), 0);
    EXPECT_THAT(machine->Text("/programs.log"),
                AllOf(HasSubstr("kube-proxy --cleanup"),
                      HasSubstr("kube-cni --cleanup --cni-conf-dir=/etc/cni/net.d")));
    const Output files =
        apiserver::RunProgram({"find", machine->Path("/etc"), machine->Path("/var"), "-type", "f"});
    EXPECT_EQ(files.out, "") << files.err;
  }
}

TEST_F(Nodectl, LooksAfterCertificates) {
  const Output made = control_.Nodectl({"init", "phase", "certs", "--rootfs", control_.Path(""),
                                        "--node-name=control-1", "--cri-socket=unix:///run/none.sock"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string before = control_.Text("/etc/kubernetes/pki/apiserver.crt");
  const Output check = control_.Nodectl({"certs", "check-expiration", "--rootfs", control_.Path("")});
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("CERTIFICATE "), HasSubstr("!MISSING! admin.conf"), HasSubstr("364d")))
      << check.err;
  const Output renew = control_.Nodectl({"certs", "renew", "apiserver", "--rootfs", control_.Path("")});
  EXPECT_EQ(renew.code, 0) << renew.err;
  EXPECT_THAT(renew.out, HasSubstr("certificate for serving the Kubernetes API renewed\n"));
  EXPECT_NE(control_.Text("/etc/kubernetes/pki/apiserver.crt"), before);
  EXPECT_EQ(control_.Nodectl({"certs", "renew", "none", "--rootfs", control_.Path("")}).code, 1);
  const Output json =
      control_.Nodectl({"-o", "json", "certs", "check-expiration", "--rootfs", control_.Path("")});
  EXPECT_THAT(json.out, HasSubstr("\"kind\": \"CertificateExpirationInfo\""));
}

}  // namespace
}  // namespace keelson::ctl
