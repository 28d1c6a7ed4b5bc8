// What kube-proxy has put into this node's kernel, in any mode: addresses of Services and their endpoints.
// Pure: live tables, servers and maps in, rows out.
#pragma once

#include <boost/json/value.hpp>
#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/ebpf/ebpf_maps.h"
#include "ctl/problem.h"
#include "lib/netlink/ipvs.h"
#include "lib/nft/program.h"

namespace keelson::ctl {

struct DumpedBackend {
  IpAddress ip;
  uint16_t port = 0;
  std::optional<uint32_t> weight;  // of IPVS; 0: drains
  uint32_t connections = 0;        // of IPVS, that are open
};

struct DumpedService {
  std::string mode;      // nftables, ipvs, ebpf
  std::string scope;     // "": everybody; "pods and node": where policy Local has others for the outside;
                         // "sockets": of pods and the node, when they connect; "devices": of those outside
  uint8_t protocol = 6;  // 0: of a cluster IP, all that is not there otherwise
  std::optional<IpAddress> ip;  // nullopt: a NodePort
  uint16_t port = 0;
  std::string verdict = "serves";  // or refuses, drops, leaves to packets
  std::vector<DumpedBackend> backends;
};

// Services of a table that kube-proxy has written (lib/dataplane/nftables_names.h). `mode`: nftables, ipvs or
// ebpf.
std::vector<DumpedService> DumpTable(const nft::Ruleset& table, const std::string& mode);
// One IPVS virtual server.
DumpedService DumpServer(const netlink::FoundServer& server,
                         const std::vector<netlink::FoundDestination>& destinations);

// Services at sockets, and at devices for external traffic, in mode ebpf.
std::vector<DumpedService> DumpSocketLb(const EbpfMaps& maps);
std::vector<DumpedService> DumpExternal(const EbpfMaps& maps);

struct Dump {
  std::vector<DumpedService> services;
  std::vector<EbpfMaps> sockets;  // of mode ebpf
  std::vector<Problem> problems;
};
// The whole dump, for programs and for people.
boost::json::value ToDocument(const Dump& dump);
std::string ToTable(const Dump& dump);
// Parts of these: programs, how full maps are, and session affinity of clients on this node.
boost::json::value SocketLbDocument(const EbpfMaps& maps);
std::string SocketLbTable(const std::vector<EbpfMaps>& families);
// Parts of these: devices with their filters, and session affinity of external clients.
boost::json::value ExternalDocument(const EbpfMaps& maps);
std::string ExternalTable(const std::vector<EbpfMaps>& families);

}  // namespace keelson::ctl
