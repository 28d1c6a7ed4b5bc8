// Forgets etcd's history, every few minutes up to where it stood the time before. Several API servers
// agree through the key "compact_rev_key" (upstream's), so that only one of them compacts.
#pragma once

#include <chrono>
#include <stop_token>

#include "controlplane/etcd/client.h"

namespace keelson::etcd {

class Compactor {
 public:
  explicit Compactor(Client& client) : client_(client) {}

  // One round: compacts to the revision that the previous round saw, if no other server did meanwhile.
  Result<> RunOnce(const Limits& limits);
  // Rounds every `period` until `stop`.
  void Run(std::chrono::seconds period, Clock& clock, std::stop_token stop);

 private:
  Client& client_;
  int64_t version_ = 0;   // of the key, as we know it
  int64_t revision_ = 0;  // of the store at the previous round; 0: none yet
};

}  // namespace keelson::etcd
