// A stock kind of operator on the whole control plane: definitions, conversion, webhooks, finalizer, owner references and
// leader election together, and what a kill at any write leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::string& log) {
    std::vector<char*> argv;
    for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
    argv.push_back(nullptr);
    UniqueFd out(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out.get(), 1);
      ::dup2(out.get(), 2);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    handle_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~Process() { End(SIGKILL); }
  int handle() const { return handle_.get(); }
  // The exit code; of a process that a signal has ended, its negative number.
  int End(int signal = 0) {
    if (pid_ < 0) return code_;
    if (signal != 0) ::kill(pid_, signal);
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return code_;
  }

 private:
  pid_t pid_ = -1;
  int code_ = 0;
  UniqueFd handle_;
};

// The index of the first process to end; -1: none in time.
int FirstToEnd(const std::vector<const Process*>& processes) {
  std::vector<pollfd> fds;
  for (const Process* one : processes) fds.push_back({one->handle(), POLLIN, 0});
  const int timeout = static_cast<int>(std::chrono::milliseconds(kPatience).count());
  if (::poll(fds.data(), fds.size(), timeout) <= 0) return -1;
  for (size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents != 0) return static_cast<int>(i);
  }
  return -1;
}

class OperatorTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    dir_ = cluster_->pki().dir() + "/" + ns_;
    std::filesystem::create_directories(dir_ + "/register");
  }
  std::unique_ptr<Process> Start(const std::string& identity, int die_at = 0) {
    const crypto::TestPki& pki = cluster_->pki();
    return std::make_unique<Process>(
        std::vector<std::string>{KEELSON_TEST_OPERATOR, "--kubeconfig", pki.dir() + "/admin.conf",
                                 "--tls-cert-file", pki.server_cert_file(), "--tls-private-key-file",
                                 pki.server_key_file(), "--ca-file", pki.ca_file(), "--register-dir",
                                 dir_ + "/register", "--identity", identity, "--die-at",
                                 std::to_string(die_at)},
        dir_ + "/operator.log");
  }
  // The life of a fleet, as its user sees it. Ends with 0 when every step had its effect; what the operator is down for
  // is tried again.
  std::unique_ptr<Process> Live() {
    const std::string script = fmt::format(
        R"sh(kc="kubectl --kubeconfig {}/admin.conf -n {}"
           again() {{ for i in $(seq 200); do "$@" && return 0; done; return 1; }}
           made() {{ $kc create -f - <<END || $kc get fleets.v1.fleets.example.com f
apiVersion: fleets.example.com/v1
kind: Fleet
metadata: {{name: f}}
spec: {{size: 3, ship: barque}}
END
           }}
           gone() {{ $kc delete fleet f --ignore-not-found --timeout=20s && ! $kc get fleet f; }}
           again made || exit 1
           again $kc wait --for=jsonpath='{{.status.ready}}'=3 fleet/f --timeout=20s || exit 2
           [ "$($kc get cm -l fleet=f -o name | wc -l)" = 3 ] || exit 3
           again $kc patch fleet f --type=merge -p '{{"spec":{{"ships":1}}}}' || exit 4
           again $kc wait --for=jsonpath='{{.status.ready}}'=1 fleet/f --timeout=20s || exit 5
           [ "$($kc get cm -l fleet=f -o name)" = configmap/f-0 ] || exit 6
           [ -e {}/register/{}.f ] || exit 7
           again gone || exit 8
           [ ! -e {}/register/{}.f ] || exit 9
           $kc wait --for=delete cm/f-0 --timeout=20s || exit 10)sh",
        cluster_->pki().dir(), ns_, dir_, ns_, dir_, ns_);
    return std::make_unique<Process>(std::vector<std::string>{"bash", "-c", script}, dir_ + "/life.log");
  }
  std::string Logs() const {
    return ReadFile(dir_ + "/operator.log").value_or("") + ReadFile(dir_ + "/life.log").value_or("");
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (const char* kind : {"mutating", "validating"}) {
      cluster_->Kubectl(
          {"delete", std::string(kind) + "webhookconfiguration", "fleets.example.com", "--ignore-not-found"});
    }
    cluster_->Kubectl({"delete", "crd", "fleets.fleets.example.com", "--ignore-not-found"});
  }

  std::string dir_;
};

TEST_F(OperatorTest, ConvertsJudgesAndReconciles) {
  auto running = Start("one");
  ASSERT_EQ(
      cluster_->Kubectl({"wait", "--for=create", "crd/fleets.fleets.example.com", "--timeout=30s"}).code, 0);
  ASSERT_EQ(cluster_
                ->Kubectl({"wait", "--for=create", "validatingwebhookconfiguration/fleets.example.com",
                           "--timeout=30s"})
                .code,
            0);
  Kubectl({"wait", "--for=condition=Established", "crd/fleets.fleets.example.com", "--timeout=30s"});
  auto fleet = [](const std::string& name, int ships) {
    return fmt::format(
        "apiVersion: fleets.example.com/v2\nkind: Fleet\nmetadata: {{name: {}}}\nspec: {{ships: {}, image: "
        "{{name: "
        "sloop}}}}\n",
        name, ships);
  };
  Output refused = Run({"create", "-f", "-"}, fleet("big", 6));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("denied the request: a fleet has at most 5 ships"));
  Kubectl({"create", "-f", "-"}, fleet("a", 2));
  // The mutating webhook has set the tag; the other version shows it its own way.
  EXPECT_EQ(Kubectl({"get", "fleets.v1.fleets.example.com", "a", "-o", "jsonpath={.spec.ship} {.spec.size}"}),
            "sloop:latest 2");
  Kubectl({"wait", "--for=jsonpath={.status.ready}=2", "fleet/a", "--timeout=30s"});
  EXPECT_EQ(Kubectl({"get", "cm", "a-0", "-o", "jsonpath={.metadata.ownerReferences[0].kind}"}), "Fleet");
  Kubectl({"delete", "fleet", "a", "--timeout=30s"});
  Kubectl({"wait", "--for=delete", "cm/a-1", "--timeout=30s"});
  EXPECT_EQ(running->End(SIGTERM), 0) << Logs();
}

TEST_F(OperatorTest, AnotherOneTakesOver) {
  auto first = Start("one");
  ASSERT_EQ(cluster_
                ->Kubectl({"-n", "default", "wait", "--for=jsonpath={.spec.holderIdentity}=one",
                           "lease/fleet-operator", "--timeout=30s"})
                .code,
            0)
      << Logs();
  auto second = Start("two");
  EXPECT_EQ(first->End(SIGKILL), -SIGKILL);
  EXPECT_EQ(cluster_
                ->Kubectl({"-n", "default", "wait", "--for=jsonpath={.spec.holderIdentity}=two",
                           "lease/fleet-operator", "--timeout=30s"})
                .code,
            0)
      << Logs();
  auto life = Live();
  EXPECT_EQ(FirstToEnd({life.get(), second.get()}), 0);
  EXPECT_EQ(life->End(), 0) << Logs();
}

TEST_F(OperatorTest, SurvivesAKillAtEachOfItsWrites) {
  int died = 0, lived = 0;
  // Each step of a life is a write or two; it is over when the operator outlives it.
  for (int die_at = 2; lived == 0 && die_at < 100; ++die_at) {
    auto doomed = Start("one", die_at);
    auto life = Live();
    if (FirstToEnd({doomed.get(), life.get()}) == 0) {
      ++died;
      ASSERT_EQ(doomed->End(), -SIGKILL) << Logs();
      doomed = Start("one");
    } else {
      ++lived;
    }
    ASSERT_EQ(life->End(), 0) << "killed at " << die_at << "\n" << Logs();
    EXPECT_EQ(doomed->End(SIGTERM), 0);
    std::filesystem::remove(dir_ + "/operator.log");
    std::filesystem::remove(dir_ + "/life.log");
  }
  // The definition and two configurations, a finalizer, the register, three ships, status; two ships less, status; the
  // register, the finalizer: before and after each.
  EXPECT_GE(died, 2 * 13);
}

}  // namespace
}  // namespace keelson::apiserver
