// Compacts etcd's history every few minutes, up to its revision at the previous round. API servers
// coordinate through upstream's key "compact_rev_key", so that only one of them compacts.
#pragma once

#include <chrono>
#include <stop_token>

#include "controlplane/etcd/client.h"

namespace keelson::etcd {

class Compactor {
 public:
  explicit Compactor(Client& client) : client_(client) {}

  // One round: compacts to the revision of the previous round, unless another server did a round since.
  Result<> RunOnce(const Limits& limits);
  // Runs a round every `period` until `stop`.
  void Run(std::chrono::seconds period, Clock& clock, std::stop_token stop);

 private:
  Client& client_;
  int64_t version_ = 0;   // of the key, as last seen
  int64_t revision_ = 0;  // of the store at the previous round; 0: none yet
};

}  // namespace keelson::etcd
