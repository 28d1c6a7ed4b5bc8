// IPsec between nodes without a key exchange: both ends derive the same keys. No I/O.
//
// A key belongs to a secret, a direction between two nodes, and an hour (the epoch). The SPI is derived
// with it:
//
//   key (36 bytes), SPI (4 bytes) = HKDF-SHA256(secret, "keelson ipsec 1", FROM | TO | addresses | epoch)
//
// Nodes send with the first secret of the file and the current hour's key. They accept keys from any secret
// of the file for the previous, the current and the next hour, so clocks may differ by up to an hour, and
// no key lives long enough to run out of sequence numbers (2^32 packets). To roll out a new secret, add it
// as the file's second line on every node, then move it to the first line, then remove the old one.
//
//   out      own pods, own address -> peer's pods; own pods -> peer's address    ESP to the peer
//   in, fwd  the same, reversed                                                  only if it came by ESP
//   out      anything -> own pods                                                unencrypted
//   out      anything -> cluster CIDRs                                           dropped: its node is unknown
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cni/agent/plan.h"
#include "lib/netlink/xfrm.h"

namespace keelson::cni::agent {

inline constexpr uint32_t kIpsecReqid = 0x4b454c;
// Identify this agent's policies.
inline constexpr uint32_t kPriorityOwn = 0x4b01, kPriorityTunnel = 0x4b02, kPriorityBlock = 0x4b03;
inline constexpr int64_t kEpochSeconds = 3600;

// One secret per line; skips blank lines and lines that begin with #. kInvalid for a secret of less than 32
// characters, or when there is none.
Result<std::vector<std::string>> ParseIpsecSecrets(std::string_view text);

struct IpsecPlan {
  std::vector<netlink::XfrmState> states;
  std::vector<netlink::XfrmPolicy> policies;
};

Result<IpsecPlan> MakeIpsecPlan(const Config& config, const Plan& plan, const NodeMap& nodes,
                                const std::vector<std::string>& secrets, int64_t epoch);

}  // namespace keelson::cni::agent
