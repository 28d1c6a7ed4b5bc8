// Mode ipvs: what it asks of the machine, and how its dataplanes are made.
#pragma once

#include <chrono>

#include "proxy/ipvs/dataplane.h"

namespace keelson::proxy::ipvs {

struct HostOptions {
  bool strict_arp = false;         // answer ARP only for addresses of the link that it came by
  netlink::IpvsTimeouts timeouts;  // zero: left as they are
};

// The scheduler's flags that Services need: mh without the client's port has all of a client's connections
// go to one endpoint.
uint32_t SchedulerFlags(const std::string& scheduler);

// What this kernel lacks: IPVS, its connection tracking, the scheduler, dummy interfaces; and what to do
// about that. Makes the device that it needs.
Result<> CheckKernel(const Options& options);

// Kernel parameters as upstream sets them. What matters fails, the others are logged.
Result<> PrepareHost(const HostOptions& host);

DataplaneMode Mode(Options options, HostOptions host, nftables::Options v4, nftables::Options v6,
                   nftables::OpenKernel open_nft);

}  // namespace keelson::proxy::ipvs
