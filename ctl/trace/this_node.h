// Which Node of the API this machine is.
#pragma once

#include <string>
#include <vector>

#include "ctl/trace/node_view.h"
#include "lib/api/types.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

// The Node that has an address of this machine.
struct ThisNode {
  std::string name;
  std::vector<IpAddress> ips;
};
// kNotFound: there is none.
Result<ThisNode> FindThisNode(const client::RestClient& api, const NodeView& node);

// What the pod's status says; those that cannot be read are left out.
std::vector<IpAddress> AddressesOf(const corev1::Pod& pod);

}  // namespace keelson::ctl
