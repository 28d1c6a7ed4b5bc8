// The fields of its Node object that kube-proxy uses. Pure.
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

// Fields that are missing or malformed are left out.
NodeFacts FactsOf(const api::core::v1::Node& node);

// False for a node that is being deleted: load balancers should send it no new connections (KEP-3836).
bool IsEligible(const api::core::v1::Node& node);

}  // namespace keelson::proxy
