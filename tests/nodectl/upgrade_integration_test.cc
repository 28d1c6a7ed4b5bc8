// nodectl upgrades a real control plane and a node that has joined it, and is killed at each step of it.
#include <gmock/gmock.h>

#include <algorithm>

#include "lib/base/file.h"
#include "lib/base/version.h"
#include "tests/nodectl/machine.h"

namespace keelson::ctl {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUnfinished[] = "/var/lib/keelson/nodectl-unfinished";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class Upgrade : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    if (std::string missing = EnterNetwork(); !missing.empty()) GTEST_SKIP() << missing;
    for (const Machine* machine : {&control_, &worker_}) {
      for (const char* unit : {"kubelet", "kube-proxy", "kube-cni"}) machine->AddUnit(unit);
      InstallKubelet(*machine, kGitVersion);
    }
    control_.AddUnit("kube-controlplane", KEELSON_CONTROLPLANE);
    Install(control_, "kube-controlplane", std::string("exec ") + KEELSON_CONTROLPLANE + " \"$@\"");
    worker_.AddUnit("kubelet", KEELSON_KUBELET);
    const Output init = control_.Nodectl({"init", "--rootfs", control_.Path(""), "--node-name=control-1",
                                          "--ignore-preflight-errors=all", "--skip-phases=mark-control-plane",
                                          "--cri-socket=unix:///run/none.sock"});
    ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");
  }
  static void Install(const Machine& machine, const std::string& program, const std::string& script) {
    ASSERT_TRUE(WriteFile(machine.Path("/bin/" + program), "#!/bin/sh\n" + script + "\n", 0755));
  }
  // What the program in PATH says; the unit of the worker runs the real one.
  static void InstallKubelet(const Machine& machine, const std::string& version) {
    Install(machine, "kubelet", "echo Kubernetes " + version);
  }
  // No container runtime is here, so no node gets Ready.
  std::vector<std::string> ApplyCommand() const {
    return {"upgrade", "apply", "--yes", "--rootfs", control_.Path(""), "--skip-phases=post-upgrade"};
  }
  std::vector<std::string> NodeCommand(std::vector<std::string> more = {}) const {
    std::vector<std::string> out = {"upgrade", "node", "--rootfs", worker_.Path(""),
                                    "--skip-phases=post-upgrade"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  // Edits a ConfigMap of kube-system as an administrator would.
  void Edit(const std::string& map, const std::string& from, const std::string& to) {
    const Output got = control_.Kubectl({"-n", "kube-system", "get", "configmap", map, "-o", "json"});
    ASSERT_EQ(got.code, 0) << got.err;
    ASSERT_THAT(got.out, HasSubstr(from));
    ASSERT_TRUE(WriteFile(control_.Path("/map.json"), Replaced(got.out, from, to)));
    const Output put = control_.Kubectl({"replace", "-f", control_.Path("/map.json")});
    ASSERT_EQ(put.code, 0) << put.err;
  }
  std::string Data(const std::string& map, const std::string& key) {
    return control_
        .Kubectl({"-n", "kube-system", "get", "configmap", map, "-o", "jsonpath={.data." + key + "}"})
        .out;
  }
  void Create(const std::string& manifest) {
    ASSERT_TRUE(WriteFile(control_.Path("/object.yaml"), manifest));
    // A pod's ServiceAccount may come a moment later.
    Output last;
    ASSERT_TRUE(Eventually([&] {
      last = control_.Kubectl({"create", "-f", control_.Path("/object.yaml")});
      return last.code == 0;
    })) << last.err;
  }
  std::string Unschedulable(const std::string& node) {
    return control_.Kubectl({"get", "node", node, "-o", "jsonpath={.spec.unschedulable}"}).out;
  }
  void JoinWorker() {
    const Output made = control_.Nodectl({"token", "create", "--print-join-command", "--kubeconfig",
                                          control_.Path("/etc/kubernetes/admin.conf")});
    ASSERT_EQ(made.code, 0) << made.err;
    const size_t token = made.out.find("--token ") + 8, pin = made.out.find("sha256:");
    const Output join = worker_.Nodectl(
        {"join", std::string(kAddress) + ":6443", "--rootfs", worker_.Path(""), "--node-name=worker-1",
         "--ignore-preflight-errors=all", "--cri-socket=unix:///run/none.sock", "--token",
         made.out.substr(token, 23), "--discovery-token-ca-cert-hash", made.out.substr(pin, 71)});
    ASSERT_EQ(join.code, 0) << join.out << join.err << worker_.UnitLog("kubelet");
    // The kubelet has written the path of its certificate as it sees it.
    const std::string conf = "/etc/kubernetes/kubelet.conf";
    ASSERT_TRUE(WriteFile(worker_.Path(conf), Replaced(worker_.Text(conf), worker_.Path(""), "")));
  }

  Machine control_{"control-1"}, worker_{"worker-1"};
};

TEST_F(Upgrade, PlansAndRefusesWhatItCannotDo) {
  if (IsSkipped()) return;
  Edit("kubeadm-config", kGitVersion, "v1.35.4");
  const std::vector<std::string> plan = {"upgrade", "plan", "--rootfs", control_.Path("")};
  const Output table = control_.Nodectl(plan);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("COMPONENT "), HasSubstr("v1.35.4"),
                               HasSubstr(std::string("nodectl upgrade apply ") + kGitVersion)));
  std::vector<std::string> json = {"-o", "json"};
  json.insert(json.end(), plan.begin(), plan.end());
  EXPECT_THAT(control_.Nodectl(json).out,
              AllOf(HasSubstr("\"kind\": \"UpgradePlan\""), HasSubstr("\"currentVersion\": \"v1.35.4\"")));

  // The packages first: the message names what to install, and nothing has changed.
  InstallKubelet(control_, "v1.35.4");
  const Output old = control_.Nodectl(ApplyCommand());
  EXPECT_EQ(old.code, 1);
  EXPECT_THAT(old.err,
              AllOf(HasSubstr("[ERROR Packages]: the installed kubelet is v1.35.4, older than nodectl"),
                    HasSubstr("apt-get install keelson-kubelet")));
  EXPECT_FALSE(control_.Has(kUnfinished));
  EXPECT_THAT(Data("kubeadm-config", "ClusterConfiguration"), HasSubstr("kubernetesVersion: v1.35.4"));
  InstallKubelet(control_, kGitVersion);

  std::vector<std::string> dry = ApplyCommand();
  dry.emplace_back("--dry-run");
  const Output would = control_.Nodectl(dry);
  EXPECT_EQ(would.code, 0) << would.err;
  EXPECT_THAT(would.out,
              AllOf(HasSubstr("[dryrun] Would run \"systemctl restart kube-controlplane.service\""),
                    HasSubstr("[dryrun] Would write ConfigMap \"kube-system/kubeadm-config\"")));
  EXPECT_FALSE(control_.Has("/etc/kubernetes/tmp"));

  Edit("kubeadm-config", "v1.35.4", "v1.33.0");
  const Output far = control_.Nodectl(ApplyCommand());
  EXPECT_EQ(far.code, 1);
  EXPECT_THAT(far.err, HasSubstr("is too high; nodectl can upgrade only 1 minor version at a time"));
  EXPECT_EQ(control_.Nodectl(plan).code, 2);
  EXPECT_THAT(worker_.Nodectl(NodeCommand()).err, HasSubstr("this machine is no node of a cluster"));
}

TEST_F(Upgrade, AppliesAndGoesOnAfterKills) {
  if (IsSkipped()) return;
  Edit("kubeadm-config", kGitVersion, "v1.35.4");
  Edit("kubelet-config", "kind: KubeletConfiguration", "kind: KubeletConfiguration\\nmaxPods: 42");
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kept","namespace":"default"}})");
  const std::string certificate = control_.Text("/etc/kubernetes/pki/apiserver.crt");
  for (const char* line :
       {"[upgrade/backup]", "[upgrade/control-plane] Renewed", "[upgrade/control-plane] Writing",
        "[upgrade/control-plane] Restarting", "[wait-control-plane]", "[upload-config]", "[kubelet]",
        "[upgrade/kubelet-config]", "[bootstrap-token]", "[addons]", "[kube-proxy]", "[kube-cni]"}) {
    EXPECT_TRUE(control_.NodectlKilledAt(ApplyCommand(), line)) << line;
    EXPECT_TRUE(control_.Has(kUnfinished)) << line;
  }
  const Output other = control_.Nodectl({"upgrade", "node", "--rootfs", control_.Path("")});
  EXPECT_THAT(other.err, HasSubstr("is of another verb, which has not ended"));
  const Output apply = control_.Nodectl(ApplyCommand());
  ASSERT_EQ(apply.code, 0) << apply.out << apply.err << control_.UnitLog("kube-controlplane");
  EXPECT_FALSE(control_.Has(kUnfinished));

  EXPECT_THAT(Data("kubeadm-config", "ClusterConfiguration"),
              HasSubstr(std::string("kubernetesVersion: ") + kGitVersion));
  EXPECT_THAT(Data("kubelet-config", "kubelet"), HasSubstr("maxPods: 42")) << "an administrator's setting";
  EXPECT_THAT(control_.Text("/var/lib/kubelet/config.yaml"),
              AllOf(HasSubstr("maxPods: 42"), HasSubstr("containerRuntimeEndpoint: unix:///run/none.sock")));
  EXPECT_EQ(control_.Kubectl({"get", "configmap", "kept", "-o", "name"}).out, "configmap/kept\n");
  EXPECT_NE(control_.Text("/etc/kubernetes/pki/apiserver.crt"), certificate) << "renewed";

  // One backup, of the time before the first change.
  const Output backups = apiserver::RunProgram({"ls", control_.Path("/etc/kubernetes/tmp")});
  const std::string backup = "/etc/kubernetes/tmp/" + backups.out.substr(0, backups.out.find('\n'));
  EXPECT_EQ(std::count(backups.out.begin(), backups.out.end(), '\n'), 1) << backups.out;
  EXPECT_EQ(control_.Text(backup + "/etc/kubernetes/pki/apiserver.crt"), certificate);
  EXPECT_THAT(control_.Text(backup + "/nodectl-backup.txt"),
              AllOf(HasSubstr("/etc/kubernetes/pki/sa.key\n"), HasSubstr("etcd.db\n")));
  EXPECT_GT(control_.Text(backup + "/etcd.db").size(), 4096u);

  // Once more changes nothing but certificates, and those not when they are not to be renewed.
  const std::string renewed = control_.Text("/etc/kubernetes/pki/apiserver.crt");
  std::vector<std::string> again = ApplyCommand();
  again.emplace_back("--certificate-renewal=false");
  const Output second = control_.Nodectl(again);
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  EXPECT_EQ(control_.Text("/etc/kubernetes/pki/apiserver.crt"), renewed);
  const Output phase =
      control_.Nodectl({"upgrade", "apply", "phase", "backup", "--rootfs", control_.Path("")});
  EXPECT_EQ(phase.code, 0) << phase.err;
  EXPECT_FALSE(control_.Has(kUnfinished));
}

TEST_F(Upgrade, ANodeIsDrainedByItsOwnCertificate) {
  if (IsSkipped()) return;
  JoinWorker();
  Create("apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\n");
  Create(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default, labels: {app: web}}\n"
      "spec: {nodeName: worker-1, terminationGracePeriodSeconds: 0, containers: [{name: c, image: none}]}\n");
  Create(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: default}\n"
      "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n");
  // A budget protects pods that run.
  const Output runs =
      control_.Kubectl({"patch", "pod", "web", "--subresource=status", "--type=merge", "-p",
                        R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}})"});
  ASSERT_EQ(runs.code, 0) << runs.err;
  Edit("kubelet-config", "kind: KubeletConfiguration", "kind: KubeletConfiguration\\nmaxPods: 42");

  const Output alone = worker_.Nodectl(NodeCommand({"--drain"}));
  EXPECT_THAT(alone.err, HasSubstr("cannot delete Pods that declare no controller (use --drain-force to "
                                   "override): default/web"));
  const Output blocked = worker_.Nodectl(NodeCommand({"--drain", "--drain-force", "--drain-timeout=1s"}));
  EXPECT_EQ(blocked.code, 1);
  EXPECT_THAT(blocked.err,
              AllOf(HasSubstr("pods are left on node worker-1 after 1s"), HasSubstr("default/web")));
  EXPECT_EQ(Unschedulable("worker-1"), "true");
  EXPECT_TRUE(worker_.Has(kUnfinished));
  EXPECT_THAT(worker_.Text("/var/lib/kubelet/config.yaml"), Not(HasSubstr("maxPods")));

  ASSERT_EQ(control_.Kubectl({"delete", "poddisruptionbudget", "web"}).code, 0);
  EXPECT_TRUE(worker_.NodectlKilledAt(NodeCommand({"--drain", "--drain-force"}), "[upgrade/kubelet-config]"));
  const Output done = worker_.Nodectl(NodeCommand({"--drain", "--drain-force"}));
  ASSERT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(Unschedulable("worker-1"), "") << "uncordoned, though another run has cordoned it";
  EXPECT_EQ(control_.Kubectl({"get", "pods", "-o", "name"}).out, "");
  EXPECT_THAT(worker_.Text("/var/lib/kubelet/config.yaml"), HasSubstr("maxPods: 42"));
  EXPECT_THAT(worker_.SystemctlLog(), HasSubstr("\nrestart kubelet.service\n"));
  EXPECT_FALSE(worker_.Has(kUnfinished));

  // What an administrator has cordoned stays so.
  ASSERT_EQ(control_.Kubectl({"cordon", "worker-1"}).code, 0);
  const Output kept = worker_.Nodectl(NodeCommand({"--drain"}));
  EXPECT_EQ(kept.code, 0) << kept.err;
  EXPECT_EQ(Unschedulable("worker-1"), "true");

  // The control plane comes first.
  Edit("kubeadm-config", kGitVersion, "v1.35.4");
  EXPECT_THAT(worker_.Nodectl(NodeCommand()).err, HasSubstr("upgrade the control plane first"));
}

}  // namespace
}  // namespace keelson::ctl
