// For tests: a control plane of its own, as a process, with etcd, certificates and a kubeconfig a user.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/crypto/testing/test_pki.h"
#include "lib/http/client/client.h"

namespace keelson::apiserver {

struct Output {
  int code = -1;
  std::string out, err;
};
// Runs a program to its end (kills it after `timeout`) with `input` on stdin.
Output RunProgram(const std::vector<std::string>& arguments, const std::string& input = "",
                  std::chrono::seconds timeout = std::chrono::seconds(60));

class TestCluster {
 public:
  // Why the machine cannot run it (no etcd, no kubectl), or empty.
  static std::string Missing();
  // Aborts when it does not come up. `flags` go to the program after its own: {"--roles", "apiserver"}.
  explicit TestCluster(const std::vector<std::string>& flags = {});
  ~TestCluster();

  // kubectl as admin (system:masters), or as another user that AddUser() knows.
  Output Kubectl(std::vector<std::string> arguments, const std::string& input = "",
                 const std::string& user = "admin");
  void AddUser(const std::string& user, const std::vector<std::string>& groups);
  // A request as `user`; empty: anonymous.
  http::ClientResponse Do(const http::ClientRequest& request, const std::string& user = "admin");
  std::unique_ptr<http::Client> NewClient(const std::string& user);
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  std::string Log() const;    // all that the process has printed
  size_t ResidentMb() const;  // its memory
  // Ends it as an operator would; its exit code, -1: a signal. Start() has it run again, on the same data.
  int Stop();
  void Start();
  pid_t pid() const { return pid_; }
  pid_t etcd_pid() const;  // of its etcd; -1: there is none
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  const http::TestPki& pki() const { return pki_; }

 private:
  std::string Conf(const std::string& user) const { return pki_.dir() + "/" + user + ".conf"; }

  http::TestPki pki_;
  std::vector<std::string> arguments_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace keelson::apiserver
