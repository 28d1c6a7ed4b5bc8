// What kube-proxy's mode ebpf serves external (north-south) traffic with at devices: maps, decoded
// (lib/dataplane/ebpf_maps.h), and the filters that read them. Of one address family.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "lib/dataplane/addresses.h"
#include "lib/dataplane/ebpf_connections.h"

namespace keelson::ctl {

struct ExternalService {
  uint32_t endpoints = 0, first_slot = 0;  // slots first_slot to first_slot + endpoints - 1
  uint32_t maglev_chunks = 0;              // of the lookup table; 0: one endpoint, which needs none
  std::chrono::seconds affinity{0};
  bool masquerade = false;
  bool limited = false;  // to source ranges
};

// A client that stays with an endpoint by session affinity.
struct ExternalAffinity {
  dataplane::ServiceAddress service;
  IpAddress client;
  dataplane::EndpointAddress endpoint;
  std::chrono::nanoseconds last_used{0};  // CLOCK_MONOTONIC
};

// An interface that is served or that has a filter.
struct ExternalDevice {
  std::string link;
  bool served = false;  // is in the map that the filters look into
  bool ingress_filter = false, egress_filter = false;
  std::optional<IpAddress> direct_source;  // packets may be forwarded past the rules, from this address,
  uint32_t mtu = 0;                        // of that size
  bool xdp = false;                        // by the driver
};

struct ExternalMaps {
  std::map<dataplane::ServiceAddress, ExternalService> services;
  // By chunk: slots, counted from first_slot.
  std::map<std::pair<dataplane::ServiceAddress, uint32_t>, std::vector<uint16_t>> maglev;
  std::vector<std::pair<dataplane::ServiceAddress, IpPrefix>> source_ranges;
  std::vector<IpPrefix> pods;  // whose traffic is not external
  std::map<dataplane::Connection, dataplane::Nat> connections;
  std::vector<ExternalAffinity> affinity;
  std::map<int, ExternalDevice> devices;  // by index
  bool draining = false;                  // no new connections are served
  std::vector<std::string> missing;       // maps that are not pinned

  // Adds an entry of the map of that name. Another map's is passed over. Sizes are right (EbpfMaps::Decode()).
  void Decode(const std::string& map, std::string_view key, std::string_view value);
  // Null: there is none of that name.
  const ExternalDevice* Device(const std::string& link) const;
};

// Adds names and filters of the calling thread's network namespace to `maps.devices`, after these have been
// decoded. Devices that have gone are removed.
Result<> ReadFilters(bool v4, ExternalMaps& maps);

}  // namespace keelson::ctl
