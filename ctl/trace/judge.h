// What is wrong: the way that packets take, held against what the API says. Pure.
#pragma once

#include <string>
#include <vector>

#include "ctl/problem.h"
#include "ctl/trace/path.h"
#include "ctl/trace/service_view.h"

namespace keelson::ctl {

// Who should get the packet, and why nobody should.
struct Expected {
  std::vector<Endpoint> endpoints;
  bool chosen_by_hints = false;  // then some of them may be left out
  std::optional<Problem> nobody;
};
Expected ExpectedEndpoints(const ServiceView& service, const PortView& port, const Frontend& frontend,
                           const Source& source, const std::string& node_name);

std::vector<Problem> Judge(const ServiceView& service, const PortView& port, const Path& path,
                           const Source& source, const std::string& node_name);
// Whether eBPF serves as it should, where kube-proxy's mode is that: sockets, or who comes from outside.
std::vector<Problem> JudgeEbpf(const NodeView& node, const Source& source, const std::string& pin_directory,
                               uint64_t node_netns);
// Connections that conntrack still sends to somebody else, for as long as packets keep coming.
std::vector<Problem> JudgeFlows(const PortView& port, const std::vector<netlink::Flow>& flows);

}  // namespace keelson::ctl
