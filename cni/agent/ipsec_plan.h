// IPsec between nodes without a key exchange: both ends derive the same keys. No I/O.
//
// A key belongs to a secret, a direction between two nodes, and an hour (the epoch), and carries the SPI
// with it:
//
//   key (36 bytes), SPI (4 bytes) = HKDF-SHA256(secret, "keelson ipsec 1", FROM | TO | addresses | epoch)
//
// Nodes send with the first secret of the file and the present hour's key, and take what was made with any
// secret of the file in the hours before, now and next: clocks may differ by up to an hour, and a key has no
// time to run out of sequence numbers (2^32 packets). A new secret is rolled out by adding it as the file's
// second line on every node, then moving it to the first, then dropping the old one.
//
//   out  own pods, own address -> peer's pods; own pods -> peer's address    ESP to the peer
//   in, fwd                     the same turned around                       only if it came by ESP
//   out  anything -> own pods                                                as it is
//   out  anything -> cluster CIDRs                                           dropped: its node is not known
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cni/agent/plan.h"
#include "lib/netlink/xfrm.h"

namespace keelson::cni::agent {

inline constexpr uint32_t kIpsecReqid = 0x4b454c;
// Mark this agent's policies.
inline constexpr uint32_t kPriorityOwn = 0x4b01, kPriorityTunnel = 0x4b02, kPriorityBlock = 0x4b03;
inline constexpr int64_t kEpochSeconds = 3600;

// One secret a line; blank lines and those that begin with # do not count. kInvalid for secrets of less than
// 32 characters, and when there is none.
Result<std::vector<std::string>> ParseIpsecSecrets(std::string_view text);

struct IpsecPlan {
  std::vector<netlink::XfrmState> states;
  std::vector<netlink::XfrmPolicy> policies;
};

Result<IpsecPlan> MakeIpsecPlan(const Config& config, const Plan& plan, const NodeMap& nodes,
                                const std::vector<std::string>& secrets, int64_t epoch);

}  // namespace keelson::cni::agent
