// Packets by policy, from the counters of the kernel's rules.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/nft/program.h"

namespace keelson::cni::agent {

// What a rule has counted since the last time, for a policy that it comes from. A rule of several policies counts
// for each of them.
struct PolicyPackets {
  std::string policy;     // "NAMESPACE/NAME", as far as a comment of nftables has room
  std::string direction;  // "ingress", "egress"
  std::string verdict;    // "allowed", "denied"
  uint64_t packets = 0;
};

// Only first packets of connections come as far as the rules, so these are connections rather than packets.
class PolicyCounters {  // thread safe
 public:
  // Reads the table of the calling thread's network namespace, and brings the metric
  // keelson_cni_network_policy_packets_total up to it. An absent table counts nothing.
  void Collect();
  // The step between: pure, but for what was counted before.
  std::vector<PolicyPackets> Count(const std::map<std::string, std::vector<nft::Program>>& chains);

 private:
  Mutex mutex_;
  std::map<std::pair<std::string, uint64_t>, uint64_t> before_ KEELSON_GUARDED_BY(mutex_);  // chain, handle
  std::set<std::vector<std::string>> shown_ KEELSON_GUARDED_BY(mutex_);                     // label values
};

}  // namespace keelson::cni::agent
