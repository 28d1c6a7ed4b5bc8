// An etcd of our own: started as a child, watched, and started again when it dies. It dies with us, so a new
// control plane always finds its data directory free.
//
// We reach it by a socket in its directory, which only its owner can enter: TLS on every call would cost a
// third of the writes a second. etcdctl and others come over the loopback interface, with mutual TLS.
//
//   DATA_DIR/    mode 0700
//     data/      etcd's own
//     etcd:0     the socket (etcd takes names of the form host:port alone)
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

struct SupervisorOptions {
  std::string binary = "etcd";  // a name is looked up in PATH
  std::string data_dir;
  int client_port = 0, peer_port = 0;  // 0: a free one
  Pki pki;                             // all empty: made under data_dir
  std::vector<std::string> extra_arguments;
};

class Supervisor {
 public:
  // Makes directories and certificates and settles the ports; starts nothing yet.
  static Result<std::unique_ptr<Supervisor>> Make(SupervisorOptions options);

  // How to reach it, by the socket; the same for the supervisor's whole life.
  const ClientOptions& client_options() const { return client_options_; }
  // The same over the loopback interface.
  ClientOptions tls_client_options() const;
  // How another process of the same user reaches the etcd that runs in `data_dir`.
  static ClientOptions Running(const std::string& data_dir);
  // Keeps etcd running until `stop`, then ends it. ready() is called once, when it first answers. An etcd
  // that has never answered and gives up at once is an error (its log's last lines are in the message).
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);
  // Of the running etcd; 0 when there is none.
  int pid() const { return pid_.load(); }

 private:
  explicit Supervisor(SupervisorOptions options) : options_(std::move(options)) {}
  std::string Url() const;
  std::string SocketFile() const;
  std::vector<std::string> Arguments() const;
  bool AwaitHealthy(int pidfd, std::stop_token stop);

  SupervisorOptions options_;
  ClientOptions client_options_;
  std::atomic<int> pid_{0};
};

}  // namespace keelson::etcd
