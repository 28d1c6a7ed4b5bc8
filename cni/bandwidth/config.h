// Configuration of the bandwidth plugin; the fields are the CNI reference plugin's.
//
//   {"type": "bandwidth", "capabilities": {"bandwidth": true},
//    "runtimeConfig": {"bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000}}}
//
// Rates are bits a second, bursts are bits; ingress is what the container receives.
#pragma once

#include <cstdint>
#include <string>

#include "cni/lib/plugin.h"
#include "lib/netlink/tc/shaping.h"

namespace keelson::cni {

struct Limit {
  uint64_t rate = 0, burst = 0;  // bits; 0: no limit
};

struct BandwidthConfig {
  Limit ingress, egress;
};

// The fields stand at the top of the configuration; if none is there, those of runtimeConfig.bandwidth count.
Outcome<BandwidthConfig> ReadBandwidthConfig(const Request& request);

// As the kernel takes it. A burst below one packet of `mtu` bytes would let nothing pass: it is one packet
// then.
netlink::TokenBucket BucketFor(const Limit& limit, int mtu);

// The ifb device of an attachment; names are short, so it is a hash of all that names it.
std::string IfbName(const Request& request);

}  // namespace keelson::cni
