// Configuration of the bandwidth plugin; the fields are the CNI reference plugin's.
//
//   {"type": "bandwidth", "capabilities": {"bandwidth": true},
//    "runtimeConfig": {"bandwidth": {"ingressRate": 8000000, "ingressBurst": 800000}}}
//
// Rates are in bits per second, bursts in bits; ingress is what the container receives.
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

// Reads the fields at the top of the configuration or, if there are none, those of runtimeConfig.bandwidth.
Outcome<BandwidthConfig> ReadBandwidthConfig(const Request& request);

// Converts to the kernel's units. A burst below `mtu` bytes would block every packet, so it becomes one
// packet.
netlink::TokenBucket BucketFor(const Limit& limit, int mtu);

// The name of an attachment's ifb device: a hash of its identity, because names are short.
std::string IfbName(const Request& request);

}  // namespace keelson::cni
