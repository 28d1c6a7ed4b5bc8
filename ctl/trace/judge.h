// Finds problems: compares the path of packets with what the API says. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/problem.h"
#include "ctl/trace/path.h"
#include "ctl/trace/service_view.h"

namespace keelson::ctl {

// The endpoints that should get the packet, or why there are none.
struct Expected {
  std::vector<Endpoint> endpoints;
  bool chosen_by_hints = false;  // by topology hints: the proxy may use some of them only
  std::optional<Problem> nobody;
};
Expected ExpectedEndpoints(const ServiceView& service, const PortView& port, const Frontend& frontend,
                           const Source& source, const std::string& node_name);

// Problems of one path. `node_name`: this node.
std::vector<Problem> Judge(const ServiceView& service, const PortView& port, const Path& path,
                           const Source& source, const std::string& node_name);
// Problems of mode ebpf on this node, as far as they concern `source`: sockets, or devices for external traffic.
// None in other modes.
std::vector<Problem> JudgeEbpf(const NodeView& node, const Source& source, const std::string& pin_directory,
                               uint64_t node_netns);
// Connections that connection tracking still sends to an address that is no endpoint any more.
std::vector<Problem> JudgeFlows(const PortView& port, const std::vector<netlink::Flow>& flows);

}  // namespace keelson::ctl
