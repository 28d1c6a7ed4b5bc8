// Reads packets.txt: Services as API objects, and the expected results of packets to them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "proxy/model/traffic.h"

namespace keelson::netns {

// The addresses in the test network, by name.
IpAddress ClientAddress(const std::string& client, bool v4);
IpAddress EndpointAddress(const std::string& endpoint, bool v4);

struct PacketCase {
  int line = 0;
  std::string client;  // pod1 pod2 node outside stranger remote
  std::string entry;   // cluster, cluster:81, external, lb, lbproxy, nodeport, nodeport-bridge, ...
  std::vector<std::string> answers;  // endpoints; or one of refused, dropped, nobody
  enum Seen { kAny, kKeep, kMasq } seen = kAny;
};

struct ServiceBlock {
  int number = 0;  // determines the addresses
  std::string name, protocol;
  std::vector<std::string> flags, endpoints;
  std::vector<PacketCase> cases;

  bool Has(const std::string& flag) const;
  uint8_t Protocol() const;
  corev1::Service Service() const;  // dual-stack
  discoveryv1::EndpointSlice Slice(bool v4) const;
  // The address and port of an entry; `here`: the node address for NodePorts.
  std::pair<IpAddress, uint16_t> Destination(const std::string& entry, bool v4) const;
};

Result<std::vector<ServiceBlock>> ReadPacketTable(const std::string& path);

// How the model names an entry and a client; nullopt for what is no Service's.
std::optional<proxy::Frontend> EntryOf(const std::string& entry);
proxy::Origin OriginOf(const std::string& client);

inline constexpr uint16_t kEndpointPort = 8080;

}  // namespace keelson::netns
