// The control plane as a static pod.
#include "ctl/cluster/static_pod.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <sstream>

#include "ctl/config/complete.h"
#include "ctl/host/paths.h"
#include "ctl/host/testing/memory_host.h"
#include "ctl/host/users.h"
#include "ctl/phases/control_plane.h"
#include "ctl/phases/init_run.h"
#include "ctl/phases/reports.h"
#include "ctl/phases/reset_run.h"
#include "ctl/preflight/check.h"
#include "lib/component/document.h"

namespace keelson::ctl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace json = boost::json;

constexpr char kUsers[] = "root:x:0:0:root:/root:/bin/sh\nkube-controlplane:x:997:996::/:/usr/sbin/nologin\n";

TEST(StaticPodText, UsersAreFoundByTheirWholeName) {
  const auto found = FindUserIn(kUsers, "kube-controlplane");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->uid, 997u);
  EXPECT_EQ(found->gid, 996u);
  EXPECT_TRUE(FindUserIn("kube:x:1:2\nroot", "kube").has_value());
  EXPECT_EQ(FindUserIn(kUsers, "kube").error().message(),
            "there is no user kube: install keelson-controlplane");
  EXPECT_FALSE(FindUserIn("kube:x:no:2::", "kube"));
}

TEST(StaticPodText, TheImageIsTheSandboxes) {
  EXPECT_EQ(SandboxImage(R"({"sandboxImage": "registry.example/pause:1"})"), "registry.example/pause:1");
  for (const char* config : {"", "{", "[]", R"({"sandboxImage": ""})", R"({"sandboxImage": 1})"}) {
    EXPECT_THAT(SandboxImage(config), HasSubstr("registry.k8s.io/pause:")) << config;
  }
}

class StaticPod : public testing::Test {
 protected:
  void SetUp() override {
    host_.files["/etc/passwd"] = {kUsers, 0644, ""};
    for (const char* directory : {"/usr", "/lib", "/etc/ssl"}) host_.directories[directory] = 0755;
    host_.runtime = RuntimeFacts{"containerd", "1.7", "", R"({"sandboxImage": "registry.example/pause:1"})"};
    options_.host_name = "node-1";
    options_.static_pod = true;
    config_.cluster.encryption_algorithm = "ECDSA-P256";
    config_.skip_phases = {"preflight",          "wait-control-plane", "upload-config",
                           "mark-control-plane", "bootstrap-token",    "addon"};
    std::vector<std::string> warnings;
    ASSERT_TRUE(Complete(config_, {"node-1", "192.0.2.10", {}}, warnings));
  }
  Result<> Run() { return InitRun(host_, config_, options_, out_, err_).Run(""); }
  json::value Manifest() {
    component::DocumentProblems problems;
    const auto read =
        component::ParseDocument(host_.Read(paths::kControlPlaneManifest).value_or(""), problems);
    return read ? json::value(*read) : json::value();
  }
  std::string At(const char* pointer) {
    boost::system::error_code failed;
    const json::value manifest = Manifest();
    const json::value* found = manifest.find_pointer(pointer, failed);
    if (failed || !found) return "(absent)";
    return found->is_string() ? std::string(found->get_string()) : json::serialize(*found);
  }

  MemoryHost host_;
  InitConfiguration config_;
  InitOptions options_;
  std::ostringstream out_, err_;
};

TEST_F(StaticPod, InitLeavesItToTheKubelet) {
  host_.files["/etc/default/kube-controlplane"] = {"KUBE_CONTROLPLANE_ARGS=\"--v=2\"\n", 0644, ""};
  const auto done = Run();
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(
      host_.commands,
      ElementsAre(
          "systemctl stop kube-controlplane.service",
          "install -d -o kube-controlplane -g kube-controlplane -m 0700 /var/lib/keelson/controlplane",
          "install -d -o kube-controlplane -g kube-controlplane -m 0750 /var/log/keelson",
          "systemctl --no-block restart kubelet.service"));
  EXPECT_EQ(host_.files[paths::kControlPlaneManifest].mode, 0600u);
  EXPECT_EQ(At("/metadata/name"), "kube-controlplane");
  EXPECT_EQ(At("/metadata/namespace"), "kube-system");
  EXPECT_EQ(At("/metadata/labels/component"), "kube-controlplane");
  EXPECT_EQ(At("/spec/hostNetwork"), "true");
  EXPECT_EQ(At("/spec/priorityClassName"), "system-node-critical");
  EXPECT_EQ(At("/spec/containers/0/image"), "registry.example/pause:1");
  EXPECT_EQ(At("/spec/containers/0/securityContext/runAsUser"), "997");
  EXPECT_EQ(At("/spec/containers/0/securityContext/runAsGroup"), "996");
  EXPECT_EQ(At("/spec/containers/0/readinessProbe/httpGet/host"), "192.0.2.10");
  const std::string command = At("/spec/containers/0/command");
  for (const char* word : {"\"/usr/bin/kube-controlplane\",\"--data-dir=/var/lib/keelson/controlplane\"",
                           "\"--advertise-address=192.0.2.10\"",
                           "\"--tls-cert-file=/etc/kubernetes/pki/apiserver.crt\"", "\"--v=2\"]"}) {
    EXPECT_THAT(command, HasSubstr(word));
  }
  // What can be written is what the unit can write.
  const std::string mounts = At("/spec/containers/0/volumeMounts");
  for (const char* path : {"/usr", "/lib", "/etc/ssl", "/etc/kubernetes"}) {
    EXPECT_THAT(mounts, HasSubstr("\"mountPath\":\"" + std::string(path) + "\",\"readOnly\":true"));
  }
  EXPECT_THAT(mounts, HasSubstr("\"mountPath\":\"/var/lib/keelson/controlplane\"}"));
  EXPECT_THAT(mounts, Not(HasSubstr("/lib64"))) << "which this machine does not have";
}

TEST_F(StaticPod, KubeadmFindsItsMemberOfEtcd) {
  config_.cluster.control_plane_endpoint = "api.example.com:6443";
  host_.versions["etcd"] = "etcd Version: 3.5.16\nGit SHA: GitNotFound\n";
  ASSERT_TRUE(Run());
  EXPECT_EQ(At("/metadata/labels/component"), "etcd");
  EXPECT_EQ(At("/metadata/labels/tier"), "control-plane");
  EXPECT_EQ(At("/metadata/annotations/kubeadm.kubernetes.io~1etcd.advertise-client-urls"),
            "https://192.0.2.10:2379");
}

TEST_F(StaticPod, KubeadmDoesNotFindAnEtcdThatItsOwnWouldEnd) {
  config_.cluster.control_plane_endpoint = "api.example.com:6443";
  for (const char* told : {"etcd Version: 3.4.23\nGit SHA: GitNotFound\n", "etcd Version: ?\n", ""}) {
    host_.versions["etcd"] = told;
    ASSERT_TRUE(Run());
    EXPECT_EQ(At("/metadata/labels/component"), "kube-controlplane") << told;
    EXPECT_EQ(At("/metadata/annotations/kubeadm.kubernetes.io~1etcd.advertise-client-urls"), "(absent)")
        << told;
  }
  EXPECT_THAT(out_.str(), HasSubstr("[control-plane] etcd on this machine is 3.4.23: 'kubeadm join"));
  EXPECT_THAT(out_.str(), HasSubstr("[control-plane] etcd on this machine is of an unknown version: "));
}

TEST_F(StaticPod, TheMachineKeepsItsModeAndItsImage) {
  options_.static_pod_image = "registry.example/empty:1";
  ASSERT_TRUE(Run());
  const std::string begun = At("/metadata/annotations/keelson.dev~1control-plane-begun");
  options_.static_pod = std::nullopt;
  options_.static_pod_image = "";
  ASSERT_TRUE(Run());
  EXPECT_EQ(At("/spec/containers/0/image"), "registry.example/empty:1");
  EXPECT_NE(At("/metadata/annotations/keelson.dev~1control-plane-begun"), begun)
      << "the kubelet starts it anew";
  EXPECT_TRUE(ControlPlaneStarted(host_));

  options_.static_pod = false;
  host_.commands.clear();
  ASSERT_TRUE(Run());
  EXPECT_FALSE(HasStaticControlPlane(host_));
  EXPECT_THAT(host_.commands, Contains("systemctl --no-block restart kube-controlplane.service"));
}

TEST_F(StaticPod, GoesOnAfterAKillAtAnyMoment) {
  const MemoryHost begin = host_;
  bool complete = false;
  for (int effects = 0; !complete; ++effects) {
    host_ = begin;
    host_.effects_left = effects;
    complete = Run().has_value();
    host_.effects_left = -1;
    const auto done = Run();
    ASSERT_TRUE(done) << "after " << effects << " effects: " << done.error().message();
    EXPECT_TRUE(HasStaticControlPlane(host_));
    EXPECT_THAT(host_.commands, Not(Contains("systemctl --no-block restart kube-controlplane.service")));
  }
}

TEST_F(StaticPod, ResetTakesItBack) {
  ASSERT_TRUE(Run());
  ResetConfiguration reset;
  reset.skip_phases = {"preflight"};
  ASSERT_TRUE(RunReset(host_, reset, out_, err_));
  EXPECT_FALSE(HasStaticControlPlane(host_));
}

TEST_F(StaticPod, NeedsTheUserOfThePackage) {
  host_.files["/etc/passwd"] = {"root:x:0:0::/:/bin/sh\n", 0644, ""};
  host_.units.erase("kube-controlplane");
  const auto refused = RunChecks(InitChecks(config_, false, true), host_, {}, out_);
  EXPECT_FALSE(refused);
  EXPECT_THAT(out_.str(), HasSubstr("[ERROR User-kube-controlplane]: there is no user kube-controlplane"));
  EXPECT_THAT(out_.str(), HasSubstr("[ERROR FileExisting-kube-controlplane]"));
  EXPECT_THAT(out_.str(), Not(HasSubstr("Service-Kube-Controlplane"))) << "it needs no unit";
  EXPECT_THAT(Run().error().message(), HasSubstr("there is no user kube-controlplane"));
}

TEST_F(StaticPod, TheReportTellsHowOthersJoin) {
  config_.cluster.control_plane_endpoint = "api.example.com:6443";
  options_.upload_certs = true;
  config_.skip_phases.emplace_back("upload-certs");
  PhaseLog log(nullptr);
  options_.log = &log;
  InitRun run(host_, config_, options_, out_, err_);
  ASSERT_TRUE(run.Run(""));
  const json::object report = InitReport(run);
  const std::string token = run.config().bootstrap_tokens.at(0).token;
  EXPECT_EQ(report.at("token").as_string(), token);
  EXPECT_EQ(report.at("server").as_string(), "https://api.example.com:6443");
  EXPECT_EQ(report.at("controlPlaneMode").as_string(), "static-pods");
  EXPECT_THAT(std::string(report.at("joinCommand").as_string()),
              HasSubstr("nodectl join api.example.com:6443 --token " + token +
                        " --discovery-token-ca-cert-hash sha256:"));
  EXPECT_EQ(report.at("certificateKey").as_string().size(), 64u);
  EXPECT_THAT(std::string(report.at("controlPlaneJoinCommand").as_string()),
              HasSubstr(" --control-plane --certificate-key "));
  EXPECT_EQ(report.at("files").at("controlPlaneManifest").as_string(), paths::kControlPlaneManifest);
  EXPECT_EQ(log.phases().at(0).at("name").as_string(), "certs/ca");

  options_.skip_token_print = true;
  InitRun quiet(host_, config_, options_, out_, err_);
  EXPECT_FALSE(InitReport(quiet).contains("joinCommand"));
  EXPECT_FALSE(InitReport(quiet).contains("token"));
}

}  // namespace
}  // namespace keelson::ctl
