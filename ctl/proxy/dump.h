// What kube-proxy has put into this node's kernel, whichever its mode: addresses, and whom they lead to.
// Pure: live tables, servers and maps in, rows out.
#pragma once

#include <boost/json/value.hpp>
#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ctl/ebpf/socket_maps.h"
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

// Of a table that proxy/nftables has written, of mode nftables, beside ipvs or below ebpf.
std::vector<DumpedService> DumpTable(const nft::Ruleset& table, const std::string& mode);
DumpedService DumpServer(const netlink::FoundServer& server,
                         const std::vector<netlink::FoundDestination>& destinations);

std::vector<DumpedService> DumpSockets(const SocketMaps& maps);
std::vector<DumpedService> DumpOutside(const SocketMaps& maps);

struct Dump {
  std::vector<DumpedService> services;
  std::vector<SocketMaps> sockets;  // of mode ebpf
  std::vector<Problem> problems;
};
boost::json::value ToDocument(const Dump& dump);
std::string ToTable(const Dump& dump);
// What maps have beside Services: how full they are, who stays with whom.
boost::json::value SocketsDocument(const SocketMaps& maps);
std::string SocketsTable(const std::vector<SocketMaps>& families);
// Devices with their filters, and who stays with whom.
boost::json::value OutsideDocument(const SocketMaps& maps);
std::string OutsideTable(const std::vector<SocketMaps>& families);

}  // namespace keelson::ctl
