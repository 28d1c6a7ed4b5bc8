// Machines and clusters that are not as nodectl expects them: the message names the cause and the fix, and a second try works.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fd.h"
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

// A disk of `size` for the directory, in the test's own mount namespace; a larger one when it is there.
bool MountDisk(const std::string& directory, const std::string& size, bool present) {
  return ::mount("disk", directory.c_str(), "tmpfs", present ? MS_REMOUNT : 0, ("size=" + size).c_str()) == 0;
}

// Fills the disk of the file's directory to its last byte.
void Fill(const std::string& file) {
  const auto fd = OpenFile(file, O_WRONLY | O_CREAT);
  ASSERT_TRUE(fd);
  const std::string zeros(4096, '\0');
  while (::write(fd->get(), zeros.data(), zeros.size()) > 0) {
  }
  ASSERT_EQ(errno, ENOSPC);
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    if (std::string missing = EnterNetwork(); !missing.empty()) GTEST_SKIP() << missing;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      GTEST_SKIP() << "cannot make a mount namespace";
    }
    for (const Machine* machine : {&control_, &worker_}) {
      for (const char* unit : {"kubelet", "kube-proxy", "kube-cni"}) machine->AddUnit(unit);
    }
    control_.AddUnit("kube-controlplane", KEELSON_CONTROLPLANE);
    worker_.AddUnit("kubelet", KEELSON_KUBELET);
    ASSERT_TRUE(WriteFile(control_.Path("/bin/kube-controlplane"),
                          std::string("#!/bin/sh\nexec ") + KEELSON_CONTROLPLANE + " \"$@\"\n", 0755));
    ASSERT_TRUE(WriteFile(control_.Path("/bin/kubelet"), "#!/bin/sh\necho Kubernetes v1.36.2\n", 0755));
  }
  void TearDown() override { (void)::umount2(control_.Path("/etc/kubernetes").c_str(), MNT_DETACH); }
  std::vector<std::string> InitCommand() const {
    return {"init",
            "--rootfs",
            control_.Path(""),
            "--node-name=control-1",
            "--ignore-preflight-errors=all",
            "--skip-phases=mark-control-plane",
            "--cri-socket=unix:///run/none.sock"};
  }

  Machine control_{"control-1"}, worker_{"worker-1"};
};

TEST_F(Faults, AMachineWithSomethingElseOnIt) {
  if (IsSkipped()) return;
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(6443);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  for (const char* file : {"/var/lib/keelson/controlplane/etcd/data/member/wal",
                           "/etc/kubernetes/kube-controlplane.env", "/etc/cni/net.d/05-cilium.conflist"}) {
    ASSERT_TRUE(MakeDirs(control_.Path(std::string(file).substr(0, std::string(file).rfind('/')))));
    ASSERT_TRUE(WriteFile(control_.Path(file), ""));
  }
  ASSERT_TRUE(MakeDirs(control_.Path("/proc")));
  ASSERT_TRUE(WriteFile(control_.Path("/proc/swaps"), "Filename Type\n/swap file\n"));
  const Output refused = control_.Nodectl({"init", "--rootfs", control_.Path(""), "--node-name=control-1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(
      refused.err,
      AllOf(HasSubstr("[ERROR Port-6443]: Port 6443 is in use"),
            HasSubstr("[ERROR DirAvailable--var-lib-keelson-controlplane-etcd]: "
                      "/var/lib/keelson/controlplane/etcd is not empty"),
            HasSubstr("[ERROR FileAvailable--etc-kubernetes-kube-controlplane.env]"),
            HasSubstr("[ERROR CNIConfig]: /etc/cni/net.d/05-cilium.conflist is of another network plugin"),
            HasSubstr("[WARNING Swap]: swap is supported for cgroup v2 only")));
  // The fix of half an earlier cluster.
  listener.Reset();
  ASSERT_EQ(
      control_.Nodectl({"reset", "--force", "--rootfs", control_.Path(""), "--ignore-preflight-errors=all"})
          .code,
      0);
  ASSERT_TRUE(RemoveFile(control_.Path("/etc/cni/net.d/05-cilium.conflist")));
  const Output again = control_.Nodectl({"init", "--rootfs", control_.Path(""), "--node-name=control-1"});
  EXPECT_THAT(again.err,
              AllOf(Not(HasSubstr("Port-6443")), Not(HasSubstr("Available")), Not(HasSubstr("CNIConfig"))));
}

TEST_F(Faults, ATokenThatIsWrong) {
  if (IsSkipped()) return;
  const Output init = control_.Nodectl(InitCommand());
  ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");
  const Output made =
      control_.Nodectl({"token", "create", "--kubeconfig", control_.Path("/etc/kubernetes/admin.conf")});
  const std::string token = made.out.substr(0, made.out.find('\n'));
  const std::string pin =
      "sha256:" + crypto::PublicKeySha256(control_.Text("/etc/kubernetes/pki/ca.crt")).value_or("");
  const auto join = [&](const std::string& with, const std::string& patience) {
    EXPECT_TRUE(WriteFile(
        worker_.Path("/join.yaml"),
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken: "
        "{token: " +
            with + ", apiServerEndpoint: \"" + kAddress + ":6443\", caCertHashes: [\"" + pin +
            "\"]}\nnodeRegistration: {name: worker-1, criSocket: \"unix:///run/none.sock\", "
            "ignorePreflightErrors: [all]}\ntimeouts: {discovery: " +
            patience + "}\n"));
    return worker_.Nodectl({"join", "--rootfs", worker_.Path(""), "--config", worker_.Path("/join.yaml")});
  };
  EXPECT_THAT(
      join("zzzzzz.0123456789abcdef", "1s").err,
      AllOf(HasSubstr("could not find a JWS signature in the cluster-info ConfigMap for token ID \"zzzzzz\""),
            HasSubstr("nodectl token create")));
  EXPECT_THAT(join(token.substr(0, 7) + "0000000000000000", "5m").err,
              HasSubstr("failed to verify JWS signature of received cluster info object"));
  EXPECT_FALSE(worker_.Has("/etc/kubernetes"));
  const Output right = join(token, "5m");
  EXPECT_EQ(right.code, 0) << right.out << right.err << worker_.UnitLog("kubelet");
}

TEST_F(Faults, AFullDisk) {
  if (IsSkipped()) return;
  const std::string directory = control_.Path("/etc/kubernetes");
  ASSERT_TRUE(MakeDirs(directory));
  ASSERT_TRUE(MountDisk(directory, "16k", false));
  const Output full = control_.Nodectl(InitCommand());
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err,
              AllOf(HasSubstr("error execution phase certs/"), HasSubstr("No space left on device")));
  ASSERT_TRUE(MountDisk(directory, "32m", true));
  const Output init = control_.Nodectl(InitCommand());
  ASSERT_EQ(init.code, 0) << init.out << init.err << control_.UnitLog("kube-controlplane");

  // An upgrade that cannot make its backup changes nothing.
  const std::vector<std::string> upgrade = {"upgrade",  "apply",           "--yes",
                                            "--rootfs", control_.Path(""), "--skip-phases=post-upgrade"};
  const std::string certificate = control_.Text("/etc/kubernetes/pki/apiserver.crt");
  Fill(control_.Path("/etc/kubernetes/filler"));
  const Output stopped = control_.Nodectl(upgrade);
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err,
              AllOf(HasSubstr("error execution phase backup: no backup in /etc/kubernetes/tmp/"),
                    HasSubstr("nothing else has changed"), HasSubstr("No space left on device")));
  EXPECT_EQ(control_.Text("/etc/kubernetes/pki/apiserver.crt"), certificate);
  ASSERT_TRUE(RemoveFile(control_.Path("/etc/kubernetes/filler")));
  const Output done = control_.Nodectl(upgrade);
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_NE(control_.Text("/etc/kubernetes/pki/apiserver.crt"), certificate);
}

}  // namespace
}  // namespace keelson::ctl
