// Runs our own etcd: starts it as a child, watches it, and restarts it when it dies. It dies with us, so a
// new control plane always finds its data directory unused.
//
// We connect through a socket in its directory, which only its owner can enter: TLS on every call would
// cost a third of the writes per second. etcdctl and others connect through the loopback interface, with
// mutual TLS. A member of a cluster of several listens at an address of the machine instead, where clients and peers come by
// mutual TLS alone.
//
//   DATA_DIR/    mode 0700
//     data/      etcd's own
//     etcd:0     the socket (etcd only accepts names of the form host:port)
//     pki/       see pki.h
//     etcd.log
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/pki.h"
#include "lib/base/error.h"

namespace keelson::etcd {

// Of our own etcd's database: at it etcd refuses writes.
inline constexpr int64_t kQuotaBytes = int64_t{8} << 30;

struct SupervisorOptions {
  std::string binary = "etcd";  // a name is looked up in PATH
  std::string data_dir;
  // Of this machine; empty: the loopback interface, where no other member can come.
  std::string address;
  std::string name = "default";
  // NAME=PEER-URL,... of a cluster that it joins as a member that has been added; empty: it begins one. etcd reads it when it
  // has no data.
  std::string initial_cluster;
  bool bootstraps = false;             // the members of initial_cluster begin the cluster together
  int client_port = 0, peer_port = 0;  // 0: etcd's ports at `address`; free ones on the loopback interface
  Pki pki;                             // all empty: make them under data_dir
  std::vector<std::string> extra_arguments;
};

class Supervisor {
 public:
  // Makes directories and certificates and chooses ports; starts nothing yet.
  static Result<std::unique_ptr<Supervisor>> Make(SupervisorOptions options);

  // Options to connect through the socket; constant for the supervisor's life.
  const ClientOptions& client_options() const { return client_options_; }
  // Options to connect through the loopback interface.
  ClientOptions tls_client_options() const;
  // Options for another process of the same user, to connect to the etcd that runs in `data_dir`.
  static ClientOptions Running(const std::string& data_dir);
  // Keeps etcd running until `stop`, then ends it. Calls ready() once, when etcd first answers. An etcd
  // that exits at once and has never answered is an error (the message has the last lines of its log).
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);
  // The pid of the running etcd; 0: none.
  int pid() const { return pid_.load(); }

 private:
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {}
  std::string Url() const;
  std::string PeerUrl() const;
  std::string SocketFile() const;
  std::vector<std::string> Arguments() const;
  bool AwaitHealthy(int pidfd, std::stop_token stop);
  bool Answers() const;  // at all; it may have no leader
  ClientOptions OwnAlone() const;

  SupervisorOptions options_;
  ClientOptions client_options_;
  std::atomic<int> pid_{0};
};

}  // namespace keelson::etcd
