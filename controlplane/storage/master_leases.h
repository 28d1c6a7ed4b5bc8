// The addresses of all running API servers of a cluster: keys below /registry/masterleases that vanish with an etcd
// lease, in the form of kube-apiserver, so that both kinds of server can stand side by side.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/etcd/client.h"
#include "lib/base/error.h"

namespace keelson::storage {

class MasterLeases {  // thread safe; calls block
 public:
  // `json`: writes JSON rather than protobuf. Both are read.
  MasterLeases(etcd::Client& client, bool json) : client_(client), json_(json) {}

  // Adds or renews a server's address, for `ttl`.
  Result<> Renew(const std::string& address, std::chrono::seconds ttl, const etcd::Limits& limits);
  Result<> Remove(const std::string& address, const etcd::Limits& limits);
  // The addresses in lexical order, read from etcd. kInternal: a stored value cannot be read.
  Result<std::vector<std::string>> List(const etcd::Limits& limits);

 private:
  etcd::Client& client_;
  const bool json_;
};

}  // namespace keelson::storage
