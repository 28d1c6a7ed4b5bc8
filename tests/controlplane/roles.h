// For tests: roles of kube-controlplane as separate processes with the permissions of a stock cluster, next
// to an API server without roles.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/testing/eventually.h"
#include "tests/apiserver/cluster.h"

namespace keelson::controlplane {

using apiserver::Output;
using apiserver::TestCluster;
using std::chrono::seconds;

// A kube-controlplane process. Port 0: the log contains the chosen port.
class Process {
 public:
  Process(const TestCluster& cluster, const std::string& name, const std::vector<std::string>& flags)
      : Process(cluster.pki().dir() + "/" + name + ".log",
                Joined({"--bind-address=127.0.0.1", "--secure-port=0",
                        "--client-ca-file=" + cluster.pki().ca_file()},
                       flags)) {}
  // With these flags only. `host`: the name of the host that it runs on; empty: this one. `environment`: NAME=VALUE, beside
  // this process's.
  Process(std::string log, std::vector<std::string> flags, const std::string& host = "",
          std::vector<std::string> environment = {})
      : log_(std::move(log)) {
    flags.insert(flags.begin(), KEELSON_CONTROLPLANE);
    std::vector<char*> argv;
    for (std::string& flag : flags) argv.push_back(flag.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (!host.empty() && (unshare(CLONE_NEWUTS) != 0 || sethostname(host.data(), host.size()) != 0)) {
        _exit(126);
      }
      for (std::string& one : environment) putenv(one.data());
      int fd = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      dup2(fd, 1);
      dup2(fd, 2);
      execv(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Process() { End(SIGKILL); }
  // Returns the exit code; -1: killed by the signal.
  int End(int signal) {
    if (pid_ < 0) return -1;
    int status = 0;
    kill(pid_, signal);
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Pause(bool pause) { kill(pid_, pause ? SIGSTOP : SIGCONT); }
  // Waits for its end; returns the exit code.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Log() const { return ReadFile(log_).value_or(""); }
  bool Says(const std::string& text) const { return Log().find(text) != std::string::npos; }
  std::string url() const {
    const std::string log = Log(), mark = "port=\"";
    const size_t line = log.find("\"Pages are served\"");
    const size_t at = line == std::string::npos ? line : log.find(mark, line);
    if (at == std::string::npos) return "";
    const size_t begin = at + mark.size();
    return "https://127.0.0.1:" + log.substr(begin, log.find('"', begin) - begin);
  }

  bool running() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  static std::vector<std::string> Joined(std::vector<std::string> one,
                                         const std::vector<std::string>& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  }

  const std::string log_;
  pid_t pid_ = -1;
};

class Roles : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string missing = TestCluster::Missing(); !missing.empty()) GTEST_SKIP() << missing;
    cluster_ = std::make_unique<TestCluster>(std::vector<std::string>{"--roles=apiserver"});
    // Not the users that this API server knows: these have the one role that a stock one gives them.
    for (const std::string program : {"kube-controller-manager", "kube-scheduler"}) {
      const std::string user = "stock-" + program;
      cluster_->AddUser(user, {});
      Kubectl({"create", "clusterrolebinding", user, "--clusterrole=system:" + program, "--user=" + user});
    }
    Kubectl({"create", "clusterrolebinding", "stock-volume-scheduler",
             "--clusterrole=system:volume-scheduler", "--user=stock-kube-scheduler"});
  }
  std::unique_ptr<Process> Start(const std::string& name, const std::string& role, const std::string& program,
                                 std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--roles=" + role, "--kubeconfig=" + File("stock-" + program + ".conf"),
                               "--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s",
                               "--leader-elect-retry-period=1s"});
    return std::make_unique<Process>(*cluster_, name, std::move(more));
  }
  std::unique_ptr<Process> StartControllers(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.end(),
                {"--use-service-account-credentials=true", "--root-ca-file=" + File("ca.crt"),
                 "--service-account-private-key-file=" + File("sa.key"), "--controllers=*,-cronjob",
                 "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16,fd00:10::/56"});
    return Start(name, "controllers", "kube-controller-manager", std::move(more));
  }
  std::string File(const std::string& name) const {
    return name == "ca.crt" ? cluster_->pki().ca_file() : cluster_->pki().dir() + "/" + name;
  }
  std::string Kubectl(std::vector<std::string> arguments, const std::string& input = "") {
    Output output = cluster_->Kubectl(std::move(arguments), input);
    EXPECT_EQ(output.code, 0) << output.err;
    return output.out;
  }
  std::string Field(const std::string& what, const std::string& path) {
    return cluster_->Kubectl({"get", what, "-o", "jsonpath=" + path}).out;
  }
  std::string Holder(const std::string& lease) {
    return Field("lease/" + lease, "{.spec.holderIdentity}", "kube-system");
  }
  std::string Field(const std::string& what, const std::string& path, const std::string& ns) {
    return cluster_->Kubectl({"-n", ns, "get", what, "-o", "jsonpath=" + path}).out;
  }
  Output Curl(const std::string& url, const std::string& user = "") {
    std::vector<std::string> command = {"curl", "-sk", "-m", "5", "-w", "\n%{http_code}", url};
    if (!user.empty()) {
      command.insert(command.end(), {"--cert", File(user + ".crt"), "--key", File(user + ".key")});
    }
    return apiserver::RunProgram(command);
  }

  std::unique_ptr<TestCluster> cluster_;
};

}  // namespace keelson::controlplane
