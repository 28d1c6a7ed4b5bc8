#include "ctl/trace/this_node.h"

namespace keelson::ctl {

Result<ThisNode> FindThisNode(const client::RestClient& api, const NodeView& node) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<corev1::Node> nodes, api.List<corev1::Node>());
  for (const corev1::Node& candidate : nodes) {
    ThisNode out{candidate.metadata().name(), {}};
    bool here = false;
    for (const auto& address : candidate.status().addresses()) {
      Result<IpAddress> ip = IpAddress::Parse(address.address());
      if (!ip) continue;
      here = here || node.IsLocal(*ip);
      out.ips.push_back(*ip);
    }
    if (here) return out;
  }
  return Error(Code::kNotFound,
               "this machine has no address of any Node: run nodectl on a node of the cluster");
}

std::vector<IpAddress> AddressesOf(const corev1::Pod& pod) {
  std::vector<IpAddress> out;
  for (const auto& entry : pod.status().pod_ips()) {
    if (Result<IpAddress> ip = IpAddress::Parse(entry.ip())) out.push_back(*ip);
  }
  return out;
}

}  // namespace keelson::ctl
