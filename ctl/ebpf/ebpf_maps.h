// What kube-proxy's mode ebpf has pinned at this moment, decoded (lib/dataplane/ebpf_maps.h): the maps and
// programs of one address family. Sockets of pods and the node are served by these, external traffic by those
// of external_maps.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/ebpf/external_maps.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "lib/dataplane/addresses.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/dataplane/ebpf_maps.h"

namespace keelson::ctl {

// How a Service is served at sockets.
struct SocketLbService {
  uint32_t endpoints = 0;  // slots 0 to endpoints - 1
  std::chrono::seconds affinity{0};
  dataplane::SocketVerdict pods = dataplane::kSocketPass, node = dataplane::kSocketPass;
};

// An endpoint that a client on this node stays with: a network namespace by session affinity, a socket of UDP.
struct SessionAffinity {
  uint64_t cookie = 0;  // of the namespace or the socket
  dataplane::ServiceAddress service;
  dataplane::EndpointAddress endpoint;
  std::chrono::nanoseconds last_used{0};  // CLOCK_MONOTONIC; of namespaces only
};

struct MapFill {
  std::string name;
  size_t entries = 0, max_entries = 0;
};

struct SocketProgram {
  std::string name;     // "connect4"
  uint64_t cgroup = 0;  // number of the cgroup that it is attached to; 0: of none
};

struct EbpfMaps {
  using Entries = std::vector<std::pair<std::string, std::string>>;

  bool v4 = true;
  std::map<dataplane::ServiceAddress, SocketLbService> services;
  std::map<std::pair<dataplane::ServiceAddress, uint32_t>, dataplane::EndpointAddress> endpoints;  // by slot
  std::set<IpAddress> node_port_ips;
  std::vector<SessionAffinity> affinity, flows, sent;
  std::chrono::nanoseconds read_at{0};  // CLOCK_MONOTONIC
  uint64_t node_netns = 0;              // cookie of the namespace that the programs take for the node's
  std::vector<MapFill> fill;
  std::vector<SocketProgram> programs;
  std::vector<std::string> missing;  // maps and programs that are not pinned
  ExternalMaps external;

  // Adds what the map of that name holds, here or in `external`. A map that is not known is passed over.
  // kInvalid: its entries are not of the layout that this program knows.
  Result<> Decode(const std::string& map, const Entries& entries);
  bool IsAttached(std::string_view program) const;
};

// Reads the maps of both families; none when no program is pinned. Needs CAP_BPF. kUnimplemented: the maps are
// of another layout.
Result<std::vector<EbpfMaps>> ReadEbpfMaps(const std::string& pin_directory);

}  // namespace keelson::ctl
