#include <gmock/gmock.h>

#include <sstream>

#include "ctl/cluster/node_files.h"
#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/host/testing/memory_host.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/join_command.h"
#include "ctl/phases/node_steps.h"
#include "ctl/phases/reset_run.h"
#include "ctl/pki/kubeconfig.h"

namespace keelson::ctl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Phases, AreChosenByName) {
  const std::vector<std::string_view> names = {"preflight", "certs/ca", "certs/sa", "certsx", "etcd/local"};
  EXPECT_THAT(*SelectPhases(names, "", {}), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(*SelectPhases(names, "certs", {}), ElementsAre(1, 2));
  EXPECT_THAT(*SelectPhases(names, "certs/sa", {}), ElementsAre(2));
  EXPECT_THAT(*SelectPhases(names, "", {"certs", "etcd/local"}), ElementsAre(0, 3));
  EXPECT_EQ(SelectPhases(names, "cert", {}).error().message(), "invalid phase name: cert");
  EXPECT_EQ(SelectPhases(names, "", {"x"}).error().message(), "invalid phase name: x");
}

// Phases that need no API server.
const std::vector<std::string> kOfTheCluster = {"preflight",          "wait-control-plane", "upload-config",
                                                "mark-control-plane", "bootstrap-token",    "addon"};

class Init : public testing::Test {
 protected:
  InitConfiguration Config() {
    InitConfiguration config;
    config.cluster.encryption_algorithm = "ECDSA-P256";
    config.skip_phases = kOfTheCluster;
    std::vector<std::string> warnings;
    EXPECT_TRUE(Complete(config, {"node-1", "192.0.2.10", {}}, warnings));
    return config;
  }
  static InitOptions Options() {
    InitOptions out;
    out.host_name = "node-1";
    return out;
  }
  Result<> Run(const InitConfiguration& config, const std::string& only = "") {
    return InitRun(host_, config, Options(), out_, err_).Run(only);
  }
  std::string Text(const std::string& path) { return host_.Read(path).value_or("(absent)"); }

  MemoryHost host_;
  std::ostringstream out_, err_;
};

TEST_F(Init, WritesAndStartsAControlPlane) {
  const auto done = Run(Config());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(host_.commands, ElementsAre("systemctl --no-block restart kube-controlplane.service",
                                          "systemctl --no-block restart kubelet.service"));
  const std::string flags = Text(paths::kControlPlaneEnv);
  for (const char* flag :
       {"--advertise-address=192.0.2.10 ", "--secure-port=6443 ", "--service-cluster-ip-range=10.96.0.0/12 ",
        "--cluster-cidr=10.244.0.0/16\"", "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt ",
        "--peer-ca-file=/etc/kubernetes/pki/ca.crt ",
        "--cluster-signing-key-file=/etc/kubernetes/pki/ca.key\"", "--enable-bootstrap-token-auth=true "}) {
    EXPECT_THAT(flags, HasSubstr(flag));
  }
  EXPECT_THAT(Text(paths::kKubeletConfig), HasSubstr("clusterDNS:\n  - \"10.96.0.10\"\n"));
  EXPECT_THAT(Text(paths::kKubeletConfig),
              HasSubstr("containerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock\n"));
  EXPECT_EQ(
      Text(paths::kKubeletFlags),
      "KUBELET_KUBEADM_ARGS=\"--register-with-taints=node-role.kubernetes.io/control-plane=:NoSchedule\"\n");
  EXPECT_FALSE(host_.Exists(paths::kUnfinished));
  EXPECT_THAT(out_.str(), HasSubstr("nodectl join 192.0.2.10:6443 --token "));
  EXPECT_THAT(out_.str(), HasSubstr(" \\\n\t--discovery-token-ca-cert-hash sha256:"));
}

TEST_F(Init, OthersCanJoinTheEtcdOfAClusterWithAnEndpoint) {
  InitConfiguration config = Config();
  EXPECT_THAT(*ControlPlaneEnvironment(config, true), Not(HasSubstr("--etcd")));
  config.cluster.control_plane_endpoint = "api.example.com:6443";
  ASSERT_TRUE(Run(config));
  EXPECT_THAT(
      Text(paths::kControlPlaneEnv),
      AllOf(
          HasSubstr("--etcd-address=192.0.2.10 --etcd-name=node-1 --etcd-pki-dir=/etc/kubernetes/pki/etcd "),
          HasSubstr("--etcd-certfile=/etc/kubernetes/pki/apiserver-etcd-client.crt "),
          Not(HasSubstr("--etcd-initial-cluster"))));
  for (const char* cluster : {"a=b", "a=https://192.0.2.1:2380,b=https://192.0.2.2:2380", ""}) {
    const std::string text = *ControlPlaneEnvironment(config, true, cluster);
    EXPECT_EQ(text.find("--etcd-initial-cluster=") == std::string::npos, std::string(cluster).empty());
    EXPECT_EQ(EtcdClusterIn(text), cluster);
  }
  config.cluster.api_server_args = {{"v", "2"}};
  EXPECT_EQ(EtcdClusterIn(*ControlPlaneEnvironment(config, true, "a=b")), "a=b");
  EXPECT_TRUE(host_.Exists("/etc/kubernetes/pki/etcd/peer.key"));
  EXPECT_TRUE(Run(config, "upload-certs")) << "without the flag nothing is uploaded";
  EXPECT_THAT(out_.str(), HasSubstr("[upload-certs] Skipping phase. Please see --upload-certs\n"));
}

TEST_F(Init, AResetAsksEtcdFirst) {
  InitConfiguration config = Config();
  config.advertise_address = "127.0.0.1";  // nothing listens there
  config.cluster.control_plane_endpoint = "127.0.0.1:1";
  ASSERT_TRUE(Run(config));
  ResetConfiguration reset;
  reset.skip_phases = {"preflight", "cleanup-node"};
  EXPECT_TRUE(RunReset(host_, reset, out_, err_)) << "an etcd that has never run is no member";
  host_.files[std::string(paths::kEtcdData) + "/data/member/snap/db"] = {};
  const auto refused = RunReset(host_, reset, out_, err_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), AllOf(HasSubstr("cannot remove this machine's member from etcd"),
                                               HasSubstr("--skip-phases=remove-etcd-member")));
  reset.ignore_preflight_errors = {"EtcdQuorum"};
  EXPECT_TRUE(RunReset(host_, reset, out_, err_));
  EXPECT_THAT(err_.str(), HasSubstr("[reset] WARNING: cannot remove this machine's member"));
  reset.ignore_preflight_errors.clear();
  EXPECT_TRUE(RunReset(host_, reset, out_, err_)) << "a second try does not ask again";
}

TEST_F(Init, PhasesRunAlone) {
  ASSERT_TRUE(Run(Config(), "certs/ca"));
  EXPECT_EQ(host_.files.size(), 2u);
  ASSERT_TRUE(Run(Config(), "certs"));
  EXPECT_EQ(host_.files.size(), 12u);
  EXPECT_THAT(host_.commands, IsEmpty());
  EXPECT_EQ(Run(Config(), "cert").error().message(), "invalid phase name: cert");
}

TEST_F(Init, GoesOnAfterAKillAtAnyMoment) {
  bool complete = false;
  for (int effects = 0; !complete; ++effects) {
    host_ = {};
    out_.str("");
    host_.effects_left = effects;
    complete = Run(Config()).has_value();
    const bool marked = host_.Exists(paths::kUnfinished);
    std::string token;
    if (marked) token = Text(paths::kUnfinished).substr(5, 23);
    host_.effects_left = -1;
    const auto done = Run(Config());
    ASSERT_TRUE(done) << "after " << effects << " effects: " << done.error().message();
    EXPECT_FALSE(host_.Exists(paths::kUnfinished));
    EXPECT_TRUE(host_.Exists(paths::kKubeletConfig));
    EXPECT_THAT(host_.commands, Contains("systemctl --no-block restart kube-controlplane.service"));
    if (marked) {
      EXPECT_THAT(out_.str(), HasSubstr("--token " + token)) << "the token of the run that was killed";
    }
  }
}

TEST_F(Init, ADryRunChangesNothing) {
  InitConfiguration config = Config();
  config.dry_run = true;
  config.skip_phases = {"preflight"};
  const auto dry = NewDryRunHost(host_, out_);
  const auto done = InitRun(*dry, config, Options(), out_, err_).Run("");
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(host_.files, IsEmpty());
  EXPECT_THAT(host_.commands, IsEmpty());
  for (const char* line : {"Would write file \"/etc/kubernetes/pki/ca.crt\" with mode 0644",
                           "Would run \"systemctl --no-block restart kube-proxy.service\"",
                           "Would write ConfigMap \"kube-system/kubeadm-config\"",
                           "Would write ConfigMap \"kube-public/cluster-info\"",
                           "Would write Secret \"kube-system/bootstrap-token-",
                           "Would write ClusterRoleBinding \"kubeadm:node-autoapprove-bootstrap\"",
                           "Would write Service \"kube-system/kube-dns\""}) {
    EXPECT_THAT(out_.str(), HasSubstr(std::string("[dryrun] ") + line));
  }
}

TEST_F(Init, WithoutSystemdItSaysSo) {
  host_.programs.erase("systemctl");
  const auto done = Run(Config());
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(),
              HasSubstr("error execution phase control-plane: no supported init system"));
}

TEST_F(Init, AnExternalCaDoesNotSignInTheCluster) {
  ASSERT_TRUE(Run(Config()));
  host_.files.erase("/etc/kubernetes/pki/ca.key");
  ASSERT_TRUE(Run(Config()));
  EXPECT_THAT(Text(paths::kControlPlaneEnv), Not(HasSubstr("cluster-signing")));
  EXPECT_THAT(err_.str(), HasSubstr("no controller signs certificates"));
}

TEST_F(Init, LetsTheKubeletRotateItsCertificate) {
  ASSERT_TRUE(Run(Config()));
  EXPECT_FALSE(ParseKubeconfig(Text(paths::kKubeletConf))->certificate_pem.empty());
  host_.files[paths::kKubeletPem] = {"pem", 0600, ""};
  host_.commands.clear();
  ASSERT_TRUE(Run(Config(), "kubelet-finalize"));
  const auto config = ParseKubeconfig(Text(paths::kKubeletConf));
  EXPECT_EQ(config->certificate_file, paths::kKubeletPem);
  EXPECT_EQ(config->certificate_pem, "");
  EXPECT_THAT(host_.commands, ElementsAre("systemctl --no-block restart kubelet.service"));
  ASSERT_TRUE(Run(Config(), "kubelet-finalize"));
  EXPECT_EQ(host_.commands.size(), 1u) << "once is enough";
}

TEST_F(Init, AnUnfinishedJoinIsNoInit) {
  host_.files[paths::kUnfinished] = {"join\n", 0600, ""};
  EXPECT_THAT(Run(Config()).error().message(), HasSubstr("is of another verb, which has not ended"));
}

TEST_F(Init, ResetLeavesNothing) {
  ASSERT_TRUE(Run(Config()));
  host_.files["/var/lib/kubelet/pki/kubelet-client-current.pem"] = {};
  host_.files["/etc/kubernetes/admin.conf.tmpAb12Cd"] = {};
  host_.files["/var/lib/keelson/controlplane/etcd/member/snap/db"] = {};
  host_.files["/etc/cni/net.d/10-keelson.conflist"] = {};
  host_.files["/etc/cni/net.d/other.conf"] = {};
  host_.files["/etc/default/kubelet"] = {};
  host_.commands.clear();
  host_.pods = {{"/var/run/containerd/containerd.sock", 2}};
  ResetConfiguration config;
  config.skip_phases = {"preflight"};
  const auto done = RunReset(host_, config, out_, err_);
  ASSERT_TRUE(done) << done.error().message();
  std::vector<std::string> left;
  for (const auto& [path, file] : host_.files) left.push_back(path);
  EXPECT_THAT(left, ElementsAre("/etc/cni/net.d/other.conf", "/etc/default/kubelet"));
  EXPECT_THAT(
      host_.commands,
      ElementsAre("systemctl stop kubelet.service", "systemctl stop kube-proxy.service",
                  "systemctl stop kube-cni.service", "systemctl stop kube-controlplane.service",
                  "remove pods at /var/run/containerd/containerd.sock", "kube-proxy --cleanup",
                  "kube-cni --cleanup --cni-conf-dir=/etc/cni/net.d", "umount below /var/lib/kubelet"));
  EXPECT_THAT(out_.str(), HasSubstr("[reset] Removed 2 pods"));

  host_.pods.clear();
  config.cri_socket = "unix:///run/other.sock";
  ASSERT_TRUE(RunReset(host_, config, out_, err_));
  EXPECT_THAT(err_.str(), HasSubstr("no container runtime is found: pods that run on this machine go on"));
  host_.pods = {{"/run/other.sock", 1}};
  host_.commands.clear();
  ASSERT_TRUE(RunReset(host_, config, out_, err_));
  EXPECT_THAT(host_.commands, Contains("remove pods at /run/other.sock"));
}

TEST_F(Init, AResetThatWasKilledIsDoneAgain) {
  ASSERT_TRUE(Run(Config()));
  const auto begin = host_.files;
  ResetConfiguration config;
  config.skip_phases = {"preflight"};
  bool complete = false;
  for (int effects = 0; !complete; ++effects) {
    host_.files = begin;
    host_.files[paths::kUnfinished] = {"init\n", 0600, ""};
    host_.effects_left = effects;
    complete = RunReset(host_, config, out_, err_).has_value();
    host_.effects_left = -1;
    ASSERT_TRUE(RunReset(host_, config, out_, err_)) << effects;
    EXPECT_THAT(host_.files, IsEmpty()) << effects;
  }
}

TEST_F(Init, ResetTakesBackWhatItMadeForVolumesAndNotTheVolumes) {
  host_.units.insert({"keelson-csi-local", "keelson-csi-controller"});
  ASSERT_TRUE(Run(Config()));
  ASSERT_TRUE(StartCsi(host_, Config().node, {"https://192.0.2.10:6443", "ca", "kubernetes"}, out_));
  EXPECT_EQ(Text(paths::kCsiEnv),
            "# Written by nodectl; flags of the administrator are in /etc/default.\n"
            "NODE_NAME=node-1\nKUBE_NODE_NAME=node-1\n");
  EXPECT_EQ(ParseKubeconfig(Text(paths::kCsiConf))->certificate_file, paths::kKubeletPem);
  EXPECT_THAT(host_.commands, Contains("systemctl --no-block restart keelson-csi-local.service"));
  EXPECT_THAT(host_.commands, Contains("systemctl --no-block restart keelson-csi-controller.service"));

  host_.files["/etc/default/keelson-csi-local"] = {
      "# --data-dir=/no\nKEELSON_CSI_LOCAL_ARGS=\"--data-dir=/srv/volumes --max-volumes-per-node=3\"\n", 0644,
      ""};
  host_.files["/srv/volumes/volumes/a/image"] = {};
  host_.versions["losetup"] =
      "/dev/loop0 /srv/volumes/volumes/a/image\n/dev/loop1 /srv/volumes2/b\n/dev/loop2\n";
  host_.commands.clear();
  host_.pods = {{"/var/run/containerd/containerd.sock", 0}};
  ResetConfiguration config;
  config.skip_phases = {"preflight"};
  ASSERT_TRUE(RunReset(host_, config, out_, err_));
  EXPECT_THAT(host_.commands,
              AllOf(Contains("systemctl stop keelson-csi-controller.service"),
                    Contains("systemctl stop keelson-csi-local.service"),
                    Contains("losetup --detach /dev/loop0"), Not(Contains("losetup --detach /dev/loop1"))));
  std::vector<std::string> left;
  for (const auto& [path, file] : host_.files) left.push_back(path);
  EXPECT_THAT(left, ElementsAre("/etc/default/keelson-csi-local", "/srv/volumes/volumes/a/image"));
  EXPECT_THAT(out_.str(), HasSubstr("stay in \"/srv/volumes\"; --remove-local-volumes removes them"));

  config.remove_volumes = true;
  ASSERT_TRUE(RunReset(host_, config, out_, err_));
  EXPECT_FALSE(host_.Exists("/srv/volumes/volumes/a/image"));
  EXPECT_EQ(PlanReset(config, {"KEELSON_CSI_LOCAL_ARGS=--data-dir=/\n"}).volumes, paths::kCsiData);
}

TEST(JoinCommand, FitsOnOneLine) {
  EXPECT_EQ(JoinCommand("192.0.2.1:6443", "a.b", "sha256:00", true),
            "nodectl join 192.0.2.1:6443 --token a.b --discovery-token-ca-cert-hash sha256:00");
}

}  // namespace
}  // namespace keelson::ctl
