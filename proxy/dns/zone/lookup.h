// What a name of the zone stands for.
#pragma once

#include <span>
#include <string_view>

#include "proxy/dns/zone/zone.h"

namespace keelson::proxy::dns {

// One name of the zone and what it stands for. It refers to the snapshot and to the name.
struct Node {
  enum Kind { kNone, kEmpty, kService, kEndpoints, kPort, kPod, kApex, kNameServer, kVersion } kind = kNone;
  const ServiceRecords* service = nullptr;
  std::span<const EndpointName> endpoints = {};
  std::string_view port = {}, protocol = {};  // without the underscore
  IpAddress ip = {};
};

// `name` ends with the zone.
Node FindNode(const Snapshot& zone, std::string_view name);

// Has the port this name and protocol? Empty ones are everybody's.
inline bool Matches(const PortName& port, std::string_view name, std::string_view protocol) {
  return (name.empty() || port.name == name) && (protocol.empty() || port.protocol == protocol);
}

// The address that a name below in-addr.arpa or ip6.arpa stands for; false when it stands for none.
bool ReverseAddress(std::string_view name, IpAddress& ip);

}  // namespace keelson::proxy::dns
