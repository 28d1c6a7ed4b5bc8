// For tests: a control plane process with etcd, certificates, and a kubeconfig per user.
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
// Runs a program with `input` on stdin; kills it after `timeout`.
Output RunProgram(const std::vector<std::string>& arguments, const std::string& input = "",
                  std::chrono::seconds timeout = std::chrono::seconds(60));

class TestCluster {
 public:
  // Returns why the machine cannot run it (no etcd, no kubectl); else empty.
  static std::string Missing();
  // Aborts when it does not start. `flags` are appended to the program's arguments: {"--roles", "apiserver"}.
  explicit TestCluster(const std::vector<std::string>& flags = {});
  ~TestCluster();

  // Runs kubectl as admin (system:masters), or as a user added by AddUser().
  Output Kubectl(std::vector<std::string> arguments, const std::string& input = "",
                 const std::string& user = "admin");
  void AddUser(const std::string& user, const std::vector<std::string>& groups);
  // Sends a request as `user`; empty: anonymous.
  http::ClientResponse Do(const http::ClientRequest& request, const std::string& user = "admin");
  std::unique_ptr<http::Client> NewClient(const std::string& user);
  uint16_t port() const { return static_cast<uint16_t>(port_); }
  std::string Log() const;    // the process's output
  size_t ResidentMb() const;  // memory of the process
  // Stops the process with SIGTERM; returns the exit code, -1: killed. Start() runs it again on the same
  // data.
  int Stop();
  void Start();
  pid_t pid() const { return pid_; }
  pid_t etcd_pid() const;  // -1: none
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  const crypto::TestPki& pki() const { return pki_; }

 private:
  std::string Conf(const std::string& user) const { return pki_.dir() + "/" + user + ".conf"; }

  crypto::TestPki pki_;
  std::vector<std::string> arguments_;
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace keelson::apiserver
