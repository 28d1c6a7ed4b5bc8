// The meaning of a name in the zone.
#pragma once

#include <span>
#include <string_view>

#include "proxy/dns/zone/zone.h"

namespace keelson::proxy::dns {

// One name of the zone and its meaning. Refers to the snapshot and to the name.
struct Node {
  enum Kind { kNone, kEmpty, kService, kEndpoints, kPort, kPod, kApex, kNameServer, kVersion } kind = kNone;
  const ServiceRecords* service = nullptr;
  std::span<const EndpointName> endpoints = {};
  std::string_view port = {}, protocol = {};  // without the underscore
  IpAddress ip = {};
};

// `name` ends with the zone.
Node FindNode(const Snapshot& zone, std::string_view name);

// Whether the port has this name and protocol. Empty ones match every port.
inline bool Matches(const PortName& port, std::string_view name, std::string_view protocol) {
  return (name.empty() || port.name == name) && (protocol.empty() || port.protocol == protocol);
}

// The address of a name below in-addr.arpa or ip6.arpa; false when it has none.
bool ReverseAddress(std::string_view name, IpAddress& ip);

}  // namespace keelson::proxy::dns
