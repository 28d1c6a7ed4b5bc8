// Brings the kernel's links, routes, neighbours and forwarding entries to the state of a Plan. It adds
// before it removes: while it works, and if it is killed at any step, every packet that had a route keeps
// one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cni/agent/plan.h"
#include "lib/netlink/batch.h"
#include "lib/netlink/socket.h"

namespace keelson::cni::agent {

// Reads what MakePlan() needs of the kernel, in the socket's network namespace.
Result<HostState> ReadHost(netlink::Socket& socket);

struct Changes {
  std::map<std::string, int> set, deleted;  // by kind of object: route, neighbour, forwarding, tunnel
  std::vector<Error> refused;
  int total() const;
};

// The differences between a plan and the kernel: the pure half of Apply().
struct Difference {
  std::vector<netlink::Route> replace_routes, delete_routes;
  std::vector<netlink::Neighbor> replace_neighbors, delete_neighbors;
  std::vector<netlink::Forwarding> replace_forwarding, delete_forwarding;
};
Difference Compare(const Plan& plan, int tunnel_link, const std::vector<netlink::Route>& routes,
                   const std::vector<netlink::Neighbor>& neighbors,
                   const std::vector<netlink::Forwarding>& forwarding);

// Writes the plan to the kernel. `wireguard_link`: the index of the WireGuard device, if the plan has
// routes to it.
Result<Changes> Apply(netlink::Socket& socket, const Config& config, const Plan& plan, const HostState& host,
                      int wireguard_link = 0);
// Removes the agent's routes and its VXLAN device.
Result<Changes> RemoveAll(netlink::Socket& socket, const Config& config);

}  // namespace keelson::cni::agent
