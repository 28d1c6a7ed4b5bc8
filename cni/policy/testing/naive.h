// For tests: NetworkPolicy read straight from the API's text, one packet at a time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/policy/objects.h"

namespace keelson::cni::policy {

struct Packet {
  IpAddress source, destination;
  uint8_t protocol = 6;
  uint16_t port = 0;  // of the destination
};

// The addresses that the cluster's DNS has given for names.
using ResolvedNames = std::map<std::string, std::vector<IpAddress>>;

// Whether the first packet of a connection passes the policies of the pods on `node`.
bool Permitted(const Cluster& cluster, const ResolvedNames& names, const std::string& node,
               const Packet& packet);

// Whether it passes from a pod to an address of the pod's own node.
bool PermittedToOwnNode(const Cluster& cluster, const ResolvedNames& names, const Packet& packet);

}  // namespace keelson::cni::policy
