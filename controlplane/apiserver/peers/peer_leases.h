// Where the API servers of a cluster reach each other: keys below /registry/peerserverleases that vanish with an etcd
// lease, in the form of kube-apiserver, so that both kinds of server can stand side by side (KEP-4020).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "controlplane/etcd/client.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

class PeerLeases {  // thread safe; calls block
 public:
  // `json`: writes JSON rather than protobuf. Both are read.
  PeerLeases(std::shared_ptr<etcd::Client> client, bool json) : client_(std::move(client)), json_(json) {}

  // Adds or renews a server's address, for `ttl`. `server`: the name of its identity Lease.
  Result<> Renew(const std::string& server, const std::string& ip, int port, std::chrono::seconds ttl,
                 const etcd::Limits& limits);
  Result<> Remove(const std::string& server, const etcd::Limits& limits);
  // host:port by server, read from etcd. kInternal: a stored value cannot be read.
  Result<std::map<std::string, std::string>> List(const etcd::Limits& limits);

 private:
  const std::shared_ptr<etcd::Client> client_;
  const bool json_;
};

}  // namespace keelson::apiserver
