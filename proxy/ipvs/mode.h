// Mode ipvs: its kernel parameters and requirements, and the factory of its dataplanes.
#pragma once

#include <chrono>

#include "proxy/ipvs/dataplane.h"

namespace keelson::proxy::ipvs {

struct HostOptions {
  bool strict_arp = false;         // answer ARP requests only for addresses of the link that they come by
  netlink::IpvsTimeouts timeouts;  // zero: left as they are
};

// The flags that Services need of a scheduler: mh-port, since mh without the client's port sends all
// connections of a client to one endpoint. 0 for other schedulers.
uint32_t SchedulerFlags(const std::string& scheduler);

// An error that names what this kernel lacks (IPVS, its connection tracking, the scheduler, dummy interfaces)
// and how to get it. Makes the device that the mode needs.
Result<> CheckKernel(const Options& options);

// Sets kernel parameters as upstream does. Fails where a necessary one cannot be set; other failures are
// logged.
Result<> PrepareHost(const HostOptions& host);

DataplaneMode Mode(Options options, HostOptions host, nftables::Options v4, nftables::Options v6,
                   nftables::OpenKernel open_nft);

}  // namespace keelson::proxy::ipvs
