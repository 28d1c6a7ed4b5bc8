// What kube-proxy takes from its Node. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::api::core::v1 {
class Node;
}

namespace keelson::proxy {

struct NodeFacts {
  std::string zone;
  std::vector<IpAddress> ips;  // internal addresses
  std::vector<IpPrefix> pod_cidrs;
  bool operator==(const NodeFacts&) const = default;
};

NodeFacts FactsOf(const api::core::v1::Node& node);

// False for a node that leaves: load balancers should send it nothing new (KEP-3836).
bool IsEligible(const api::core::v1::Node& node);

}  // namespace keelson::proxy
