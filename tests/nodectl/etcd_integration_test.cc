// nodectl with real members of etcd: the one of a single control plane, and those of a control plane of three.
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#include <boost/json.hpp>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "tests/nodectl/machine.h"

namespace keelson::ctl {
namespace {

using apiserver::Output;
using apiserver::TestCluster;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Etcd : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    if (apiserver::RunProgram({"etcdctl", "version"}).code != 0) GTEST_SKIP() << "no etcdctl";
    if (std::string missing = EnterNetwork(); !missing.empty()) GTEST_SKIP() << missing;
    for (int i = 1; i < 3; ++i) {
      const std::string address = Address(i) + "/24";
      ASSERT_EQ(apiserver::RunProgram({"ip", "address", "add", address, "dev", "uplink"}).code, 0);
    }
    ASSERT_EQ(NameMachines(), "");
    for (const Machine* machine : {&one_, &two_, &three_}) {
      for (const char* unit : {"kubelet", "kube-proxy", "kube-cni"}) machine->AddUnit(unit);
      machine->AddUnit("kube-controlplane", KEELSON_CONTROLPLANE);
    }
  }

  // etcd asks whether the address that a peer comes from is one of its certificate's. A machine's own packets have the address that
  // they go to, so here every name has all addresses.
  std::string NameMachines() {
    std::string text;
    for (int i = 0; i < 3; ++i) text += Address(i) + " cp-1 cp-2 cp-3 localhost\n";
    std::string file = one_.Path("/hosts");
    if (!WriteFile(file, "127.0.0.1 localhost\n" + text)) return file;
    if (::unshare(CLONE_NEWNS) != 0) return "cannot make a mount namespace";
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mounts are not private";
    named_ = ::mount(file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
    return named_ ? "" : "no /etc/hosts";
  }
  // Before the machine's files go: nothing can be mounted over a file that has gone.
  void TearDown() override {
    if (named_) ::umount2("/etc/hosts", MNT_DETACH);
  }

  // The machines share the network: each has an address, and a port for its API server.
  static std::string Address(int index) { return "192.0.2." + std::to_string(index + 1); }
  static std::string Port(int index) { return std::to_string(6443 + index); }

  // No kubelet registers a node: there is no container runtime.
  std::vector<std::string> InitCommand(std::vector<std::string> more) const {
    std::vector<std::string> out = {
        "init",
        "--rootfs",
        one_.Path(""),
        "--node-name=cp-1",
        "--ignore-preflight-errors=all",
        "--skip-phases=mark-control-plane,addon",
        "--cri-socket=unix:///run/none.sock",
    };
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> JoinCommand(const Machine& machine, int index, const std::string& key) const {
    return {"join",
            Address(0) + ":6443",
            "--rootfs",
            machine.Path(""),
            "--node-name=" + machine.name(),
            "--ignore-preflight-errors=all",
            "--skip-phases=kubelet-wait-bootstrap",
            "--cri-socket=unix:///run/none.sock",
            "--token=abcdef.0123456789abcdef",
            "--discovery-token-unsafe-skip-ca-verification",
            "--control-plane",
            "--certificate-key=" + key,
            "--apiserver-advertise-address=" + Address(index),
            "--apiserver-bind-port=" + Port(index)};
  }
  Output Run(const Machine& machine, std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--rootfs", machine.Path("")});
    return machine.Nodectl(std::move(arguments));
  }
  // The members that etcd lists, as nodectl prints them.
  boost::json::array Members(const Machine& machine) const {
    const Output output = Run(machine, {"-o", "json", "etcd", "members"});
    EXPECT_EQ(output.code, 0) << output.err;
    if (output.code != 0) return {};
    return boost::json::parse(output.out).at("members").as_array();
  }
  // A field of the document that nodectl has printed.
  static std::string Text(const Output& output, const char* field) {
    boost::system::error_code failed;
    const boost::json::value read = boost::json::parse(output.out, failed);
    const boost::json::value* found =
        failed || !read.is_object() ? nullptr : read.as_object().if_contains(field);
    return found && found->is_string() ? std::string(found->get_string()) : "no document: " + output.out;
  }
  void AddNode(const Machine& machine) const {
    ASSERT_TRUE(
        WriteFile(one_.Path("/node.yaml"),
                  R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")" + machine.name() + "\"}}"));
    const Output made = one_.Kubectl({"create", "-f", one_.Path("/node.yaml")});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  // Whether the API server of that machine reads and writes.
  Output Annotate(const Machine& machine, int index, const std::string& value) const {
    return machine.Kubectl({"--server=https://" + Address(index) + ":" + Port(index), "annotate",
                            "--overwrite", "namespace", "default", "test=" + value});
  }
  std::string Annotation() const {
    return one_.Kubectl({"get", "namespace", "default", "-o", "jsonpath={.metadata.annotations.test}"}).out;
  }

  bool named_ = false;
  Machine one_{"cp-1"}, two_{"cp-2"}, three_{"cp-3"};
};

TEST_F(Etcd, IsBackedUpAndRestored) {
  const Output init = one_.Nodectl(InitCommand({}));
  ASSERT_EQ(init.code, 0) << init.out << init.err << one_.UnitLog("kube-controlplane");
  EXPECT_FALSE(one_.Has("/etc/kubernetes/pki/etcd")) << "no other machine can join this etcd";
  EXPECT_THAT(Members(one_), SizeIs(1));
  ASSERT_EQ(Annotate(one_, 0, "before").code, 0);

  // A directory of snapshots, of which two stay.
  const std::string directory = one_.Path("/backups"), file = one_.Path("/snapshot.db");
  ASSERT_TRUE(MakeDirs(directory));
  for (const char* name : {"keelson-etcd-20200101T000000Z.db", "keelson-etcd-20200102T000000Z.db",
                           "keelson-etcd-20200103T000000Z.db.part", "mine.db"}) {
    ASSERT_TRUE(WriteFile(directory + "/" + name, ""));
  }
  const Output unkept = Run(one_, {"etcd", "snapshot", "save", "--directory", directory, "--dry-run"});
  ASSERT_EQ(unkept.code, 0) << unkept.err;
  ASSERT_THAT(*ListDir(directory), SizeIs(4)) << "a dry run changes nothing";
  const Output kept =
      Run(one_, {"-o", "json", "etcd", "snapshot", "save", "--directory", directory, "--keep", "2"});
  ASSERT_EQ(kept.code, 0) << kept.err;
  EXPECT_THAT(Text(kept, "path"), StartsWith(directory + "/keelson-etcd-"));
  const std::vector<std::string> names = *ListDir(directory);
  ASSERT_THAT(names, SizeIs(3));
  EXPECT_EQ(names[0], "keelson-etcd-20200102T000000Z.db");
  EXPECT_EQ(names[2], "mine.db");

  const Output saved = Run(one_, {"etcd", "snapshot", "save", file});
  ASSERT_EQ(saved.code, 0) << saved.err;
  const Output told = one_.Nodectl({"-o", "json", "etcd", "snapshot", "status", file});
  ASSERT_EQ(told.code, 0) << told.err;
  const auto document = boost::json::parse(told.out);
  EXPECT_GT(document.at("totalKey").to_number<int>(), 10);
  EXPECT_GT(document.at("revision").to_number<int>(), 10);

  ASSERT_EQ(Annotate(one_, 0, "after").code, 0);
  EXPECT_THAT(Run(one_, {"etcd", "defrag", "--dry-run"}).out,
              StartsWith("[dryrun] Would defragment unix://"));
  const Output defragmented = Run(one_, {"-o", "json", "etcd", "defrag"});
  ASSERT_EQ(defragmented.code, 0) << defragmented.err;
  EXPECT_THAT(defragmented.err, HasSubstr("Defragmented unix://"));
  EXPECT_GT(boost::json::parse(defragmented.out).at("members").at(0).at("dbSize").to_number<int>(), 0);
  const Output status = Run(one_, {"etcd", "status"});
  EXPECT_EQ(status.code, 0) << status.out << status.err;
  EXPECT_THAT(status.out, HasSubstr("IS LEADER"));

  // Never below a running etcd, never over data without a word, never out of a damaged snapshot.
  std::vector<std::string> restore = {"etcd", "restore", file, "--force"};
  EXPECT_THAT(Run(one_, restore).err, HasSubstr("kube-controlplane runs: stop it first"));
  std::vector<std::string> by_name = {
      "etcd", "restore", file, "--force", "--data-dir", one_.Path("/var/lib/keelson/controlplane/etcd")};
  EXPECT_THAT(Run(one_, by_name).err, HasSubstr("an etcd runs with the data in"));
  ASSERT_EQ(one_.Systemctl({"stop", "kube-controlplane.service"}).code, 0);
  EXPECT_THAT(Run(one_, {"etcd", "restore", file}).err,
              HasSubstr("exists: --force puts the snapshot in its place"));
  EXPECT_THAT(Run(one_, {"etcd", "restore", directory + "/mine.db", "--force"}).err,
              HasSubstr("this is no snapshot of etcd"));
  EXPECT_THAT(Run(one_, {"etcd", "restore", file, "--dry-run"}).err, HasSubstr("exists: --force"));
  std::vector<std::string> dry_run = restore;
  dry_run.emplace_back("--dry-run");
  EXPECT_THAT(Run(one_, dry_run).out, StartsWith("[dryrun] Would restore " + file));
  restore.insert(restore.end(), {"--rootfs", one_.Path("")});
  EXPECT_TRUE(one_.NodectlKilledAt(restore, "[restore] Making"));
  EXPECT_TRUE(one_.Has("/var/lib/keelson/controlplane/etcd/data/member"));
  restore.insert(restore.begin(), {"-o", "json"});
  const Output restored = one_.Nodectl(restore);
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.err, HasSubstr("[restore] The data that was there is in "));
  EXPECT_THAT(Text(restored, "dataDir"), EndsWith("/var/lib/keelson/controlplane/etcd/data"));
  ASSERT_EQ(one_.Systemctl({"restart", "kube-controlplane.service"}).code, 0);
  EXPECT_TRUE(Eventually([&] { return Annotation() == "before"; })) << one_.UnitLog("kube-controlplane");
}

TEST_F(Etcd, MembersJoinAndLeave) {
  const Output init = one_.Nodectl(InitCommand({"--control-plane-endpoint=" + Address(0) + ":6443",
                                                "--upload-certs", "--token=abcdef.0123456789abcdef"}));
  ASSERT_EQ(init.code, 0) << init.out << init.err << one_.UnitLog("kube-controlplane");
  constexpr std::string_view kLine = "Using certificate key:\n";
  const size_t at = init.out.find(kLine);
  ASSERT_NE(at, std::string::npos) << init.out;
  const std::string key = init.out.substr(at + kLine.size(), 64);
  EXPECT_THAT(init.out, HasSubstr("--control-plane --certificate-key " + key));
  EXPECT_THAT(one_.Kubectl({"-n", "kube-system", "get", "secret", "kubeadm-certs", "-o",
                            "jsonpath={.metadata.ownerReferences[0].name}"})
                  .out,
              HasSubstr("bootstrap-token-"));
  AddNode(two_);
  AddNode(three_);

  const Output wrong = two_.Nodectl(JoinCommand(two_, 1, std::string(64, '0')));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("cipher: message authentication failed"));
  EXPECT_FALSE(two_.Has("/etc/kubernetes/pki/ca.key"));

  for (const char* line :
       {"[download-certs]", "[kubeconfig]", "[kubelet-start]", "[etcd] Announcing", "[control-plane] Writing",
        "[control-plane] Starting", "[etcd] Waiting", "[wait-control-plane]"}) {
    EXPECT_TRUE(two_.NodectlKilledAt(JoinCommand(two_, 1, key), line)) << line;
  }
  for (const auto& [machine, index] : {std::pair(&two_, 1), std::pair(&three_, 2)}) {
    const Output joined = machine->Nodectl(JoinCommand(*machine, index, key));
    ASSERT_EQ(joined.code, 0) << joined.out << joined.err << machine->UnitLog("kube-controlplane");
    EXPECT_THAT(joined.out, HasSubstr("a new control plane instance was created"));
    EXPECT_EQ(machine->Text("/etc/kubernetes/pki/ca.key"), one_.Text("/etc/kubernetes/pki/ca.key"));
    EXPECT_NE(machine->Text("/etc/kubernetes/pki/etcd/peer.key"),
              one_.Text("/etc/kubernetes/pki/etcd/peer.key"));
    EXPECT_THAT(
        one_.Kubectl({"get", "node", machine->name(), "-o", "jsonpath={.metadata.labels} {.spec.taints}"})
            .out,
        AllOf(HasSubstr("node-role.kubernetes.io/control-plane"), HasSubstr("NoSchedule")));
    EXPECT_EQ(Annotate(*machine, index, machine->name()).code, 0);
  }
  const boost::json::array members = Members(three_);
  ASSERT_THAT(members, SizeIs(3));
  for (const boost::json::value& member : members) {
    EXPECT_TRUE(member.at("started").as_bool());
    EXPECT_FALSE(member.at("learner").as_bool());
  }
  const Output status = Run(two_, {"etcd", "status"});
  EXPECT_EQ(status.code, 0) << status.out << status.err;
  const Output defragmented = Run(two_, {"etcd", "defrag"});
  EXPECT_EQ(defragmented.code, 0) << defragmented.err;
  EXPECT_THAT(Split(Trim(defragmented.out), '\n'), SizeIs(3));
  EXPECT_EQ(one_.Kubectl({"-n", "kube-system", "get", "configmap", "keelson-etcd", "-o",
                          "jsonpath={.data.endpoints}"})
                .out,
            "https://192.0.2.1:2379,https://192.0.2.2:2379,https://192.0.2.3:2379");

  // A member that hangs: its API server goes on with the others, of which it has learned meanwhile.
  const Output child =
      apiserver::RunProgram({"pgrep", "-P", std::to_string(one_.UnitPid("kube-controlplane"))});
  const pid_t etcd = std::atoi(child.out.c_str());
  ASSERT_GT(etcd, 0) << child.err;
  ASSERT_EQ(::kill(etcd, SIGSTOP), 0);
  EXPECT_TRUE(Eventually([&] { return Annotate(one_, 0, "elsewhere").code == 0; }))
      << one_.UnitLog("kube-controlplane");
  ASSERT_EQ(::kill(etcd, SIGCONT), 0);
  EXPECT_TRUE(Eventually([&] { return Run(two_, {"etcd", "status"}).code == 0; }));

  // All of them go back to one snapshot.
  const std::string file = one_.Path("/snapshot.db");
  ASSERT_EQ(Annotate(one_, 0, "before").code, 0);
  const Output saved = Run(one_, {"etcd", "snapshot", "save", file});
  ASSERT_EQ(saved.code, 0) << saved.err;
  ASSERT_EQ(Annotate(one_, 0, "after").code, 0);
  std::string cluster;
  for (const Machine* machine : {&one_, &two_, &three_}) {
    ASSERT_EQ(machine->Systemctl({"stop", "kube-controlplane.service"}).code, 0);
    const int index = machine->name().back() - '1';
    cluster += (index == 0 ? "" : ",") + machine->name() + "=https://" + Address(index) + ":2380";
  }
  for (const Machine* machine : {&one_, &two_, &three_}) {
    const Output restored = Run(*machine, {"etcd", "restore", file, "--force", "--initial-cluster", cluster,
                                           "--initial-cluster-token", "restored-1"});
    ASSERT_EQ(restored.code, 0) << restored.err;
  }
  for (const Machine* machine : {&one_, &two_, &three_}) {
    ASSERT_EQ(machine->Systemctl({"restart", "kube-controlplane.service"}).code, 0);
  }
  EXPECT_TRUE(Eventually([&] { return Annotation() == "before"; })) << one_.UnitLog("kube-controlplane");
  EXPECT_TRUE(Eventually([&] { return Run(two_, {"etcd", "status"}).code == 0; }));

  // A power cut of one machine: the others serve on, and none of them can leave.
  ASSERT_EQ(::kill(two_.UnitPid("kube-controlplane"), SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return Annotate(three_, 2, "alone").code == 0; }));
  EXPECT_TRUE(Eventually([&] { return Annotate(one_, 0, "alone").code == 0; }));
  const Output problems = Run(three_, {"etcd", "status"});
  EXPECT_EQ(problems.code, 2) << problems.out;
  EXPECT_THAT(problems.out, HasSubstr("[MemberUnreachable] member cp-2"));
  EXPECT_THAT(Run(three_, {"etcd", "defrag"}).err, HasSubstr("member cp-2 is not healthy"));
  const Output refused = Run(three_, {"reset", "--force"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("without this member etcd would lose its quorum"));
  EXPECT_TRUE(three_.Has("/etc/kubernetes/admin.conf"));

  // The machine that is off is lost: its member goes without it.
  EXPECT_THAT(Run(three_, {"etcd", "members", "remove", "cp-1"}).err, HasSubstr("member cp-1 answers"));
  EXPECT_THAT(Run(three_, {"etcd", "members", "remove", "cp-9"}).err, HasSubstr("etcd has no member cp-9"));
  const Output removed = Run(three_, {"etcd", "members", "remove", "cp-2"});
  ASSERT_EQ(removed.code, 0) << removed.err;
  EXPECT_EQ(removed.err, "");
  EXPECT_THAT(Members(three_), SizeIs(2));
  EXPECT_EQ(Run(three_, {"etcd", "status"}).code, 0);
  EXPECT_EQ(one_.Kubectl({"-n", "kube-system", "get", "configmap", "keelson-etcd", "-o",
                          "jsonpath={.data.endpoints}"})
                .out,
            "https://192.0.2.1:2379,https://192.0.2.3:2379");

  // It is found again after all, and another one leaves.
  for (const Machine* machine : {&two_, &three_}) {
    const Output reset = Run(*machine, {"reset", "--force"});
    ASSERT_EQ(reset.code, 0) << reset.out << reset.err;
    if (machine == &three_) {
      EXPECT_THAT(reset.out, HasSubstr("[reset] Removing this machine's member"));
    }
    const Output files =
        apiserver::RunProgram({"find", machine->Path("/etc"), machine->Path("/var"), "-type", "f"});
    EXPECT_EQ(files.out, "") << files.err;
  }
  EXPECT_THAT(Members(one_), SizeIs(1));
  EXPECT_TRUE(Eventually([&] { return Annotate(one_, 0, "last").code == 0; }));
  const Output last = Run(one_, {"reset", "--force"});
  EXPECT_EQ(last.code, 0) << last.err;
}

TEST_F(Etcd, ASingleControlPlaneGetsFurtherOnes) {
  const Output init = one_.Nodectl(InitCommand({"--token=abcdef.0123456789abcdef"}));
  ASSERT_EQ(init.code, 0) << init.out << init.err << one_.UnitLog("kube-controlplane");
  ASSERT_EQ(Annotate(one_, 0, "kept").code, 0);
  EXPECT_THAT(Run(one_, {"etcd", "expose"}).err, HasSubstr("--control-plane-endpoint is missing"));

  std::vector<std::string> expose = {"etcd", "expose", "--rootfs", one_.Path(""),
                                     "--control-plane-endpoint=localhost:6443"};
  std::vector<std::string> dry = expose;
  dry.emplace_back("--dry-run");
  const Output would = one_.Nodectl(dry);
  EXPECT_EQ(would.code, 0) << would.err;
  EXPECT_THAT(would.out, HasSubstr("[dryrun] Would set the peer URL of this machine's member"));
  EXPECT_FALSE(one_.Has("/etc/kubernetes/pki/etcd"));
  for (const char* line :
       {"[certs] Renewing", "[certs] Generating \"etcd/peer\"", "[control-plane] Writing",
        "[wait-control-plane]", "[etcd] Setting", "[bootstrap-token]", "[upload-config]"}) {
    EXPECT_TRUE(one_.NodectlKilledAt(expose, line)) << line;
    EXPECT_TRUE(Eventually([&] { return Annotation() == "kept"; }))
        << line << one_.UnitLog("kube-controlplane");
  }
  for (int round = 0; round < 2; ++round) {
    const Output exposed = one_.Nodectl(expose);
    ASSERT_EQ(exposed.code, 0) << exposed.out << exposed.err << one_.UnitLog("kube-controlplane");
    EXPECT_THAT(exposed.out, HasSubstr("nodectl init phase upload-certs --upload-certs"));
  }
  boost::json::array members = Members(one_);
  ASSERT_THAT(members, SizeIs(1));
  EXPECT_EQ(members[0].at("peerURLs"), boost::json::parse(R"(["https://192.0.2.1:2380"])"));
  EXPECT_EQ(Annotation(), "kept");

  // The key comes from the upload, as on any control plane of several.
  const std::string key(64, '7');
  const Output uploaded = Run(one_, {"init", "phase", "upload-certs", "--upload-certs", "--certificate-key",
                                     key, "--control-plane-endpoint=localhost:6443", "--node-name=cp-1"});
  ASSERT_EQ(uploaded.code, 0) << uploaded.err;
  AddNode(two_);
  const Output joined = two_.Nodectl(JoinCommand(two_, 1, key));
  ASSERT_EQ(joined.code, 0) << joined.out << joined.err << two_.UnitLog("kube-controlplane");
  EXPECT_THAT(Members(two_), SizeIs(2));
  EXPECT_EQ(Annotate(two_, 1, "both").code, 0);

  // Without a quorum a control plane stops all the same, long before systemd would kill it.
  ASSERT_EQ(::kill(two_.UnitPid("kube-controlplane"), SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return Annotate(one_, 0, "nothing").code != 0; }));
  EXPECT_THAT(Run(one_, {"etcd", "members", "remove", "cp-2"}).code, 1);
  const SteadyTime begin = SteadyTime::clock::now();
  ASSERT_EQ(one_.Systemctl({"stop", "kube-controlplane.service"}).code, 0);
  EXPECT_LT(SteadyTime::clock::now() - begin, std::chrono::seconds(40)) << one_.UnitLog("kube-controlplane");
}

}  // namespace
}  // namespace keelson::ctl
