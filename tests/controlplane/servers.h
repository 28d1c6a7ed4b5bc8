// For tests: several kube-controlplane processes side by side on one etcd, and clients that go from one to another.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/http/client/client.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {

struct Answer {
  int status = 0;  // 0: no answer
  std::string body, error;
  bool unsent = false;  // no connection could be made: the server has seen nothing of the request
  std::string retry_after;
  // The text of a field as the API writes it, `"name":"value"`; the first one.
  std::string Field(const std::string& name) const;
};

// The first of the servers has all roles, the others serve the API alone. Their addresses, which nothing connects to, are
// 192.0.2.10 and following.
class Servers {
 public:
  // `own_flags`: more flags of each. The servers then have hosts of their own, and with them identities, and trust each
  // other as peers: `flags` has to name a client certificate (--proxy-client-cert-file).
  // `clocks`: seconds that the wall clocks of servers are ahead of this machine's. Not with sanitizers (kMovesClocks).
  explicit Servers(size_t count, const std::vector<std::string>& flags = {},
                   std::vector<std::vector<std::string>> own_flags = {}, const std::vector<int>& clocks = {});

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kMovesClocks = false;
#else
  static constexpr bool kMovesClocks = true;
#endif
  size_t size() const { return ports_.size(); }
  // Starts the process again; Ready() waits until it serves.
  void Start(size_t index);
  void Ready(size_t index);
  bool Running(size_t index) const { return processes_[index]->running(); }
  int End(size_t index, int signal) { return processes_[index]->End(signal); }

  // A connection of its own, as a member of system:masters, or without a certificate. Not thread safe: one a thread.
  std::unique_ptr<http::Client> NewClient(size_t index, bool anonymous = false) const;
  // One request to one server, without retries.
  static Answer Do(http::Client& client, const std::string& method, const std::string& target,
                   const std::string& body = "");
  Answer Do(size_t index, const std::string& method, const std::string& target, const std::string& body = "");
  etcd::Client& etcd() { return *etcd_client_; }
  std::string Log(size_t index) const { return processes_[index]->Log(); }

 private:
  void MakeClocks(const std::vector<int>& clocks);

  etcd::TestEtcd etcd_;
  std::unique_ptr<etcd::Client> etcd_client_;
  crypto::TestPki pki_;
  crypto::TestCertificate admin_;
  const std::vector<std::string> flags_;
  const std::vector<std::vector<std::string>> own_flags_;
  std::vector<std::vector<std::string>> environments_;  // of each; empty: none has any
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<http::Client>> clients_;
};

// A client that stays with a server as long as it answers, and repeats requests as client-go and its transport do: after
// a refused connection, after a stream that the server says it has not begun, and after 429 and 503 with Retry-After;
// reads also after a broken connection. Everything else is the answer of the caller.
class RetryingClient {
 public:
  RetryingClient(const Servers& servers, size_t first);
  Answer Do(const std::string& method, const std::string& target, const std::string& body = "");

 private:
  const Servers& servers_;
  size_t at_;
  std::vector<std::unique_ptr<http::Client>> clients_;
};

}  // namespace keelson::controlplane
