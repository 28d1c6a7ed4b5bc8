#include "cni/portmap/stale_flows.h"

#include <netinet/in.h>

#include <algorithm>
#include <functional>

#include "lib/netlink/addr.h"
#include "lib/netlink/conntrack.h"

namespace keelson::cni {
namespace {

Result<> DropUdp(bool v4, const std::function<bool(const netlink::Flow&)>& unwanted) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenNetfilter());
  KEELSON_ASSIGN_OR_RETURN(auto flows, netlink::ListFlows(socket, v4, IPPROTO_UDP));
  for (const netlink::Flow& flow : flows) {
    if (!unwanted(flow)) continue;
    KEELSON_ASSIGN_OR_RETURN(bool deleted, netlink::DeleteFlow(socket, flow));
    (void)deleted;
  }
  return {};
}

}  // namespace

Result<> DropFlowsElsewhere(const PortmapConfig& config, const ContainerAddresses& addresses) {
  std::vector<const Mapping*> udp;
  for (const Mapping& mapping : config.mappings) {
    if (mapping.protocol == IPPROTO_UDP) udp.push_back(&mapping);
  }
  if (udp.empty()) return {};
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket routing, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(auto local, netlink::ListAddresses(routing));
  auto is_local = [&](const IpAddress& address) {
    return std::any_of(local.begin(), local.end(),
                       [&](const netlink::Address& a) { return a.prefix.address() == address; });
  };
  for (const auto& container : {addresses.v4, addresses.v6}) {
    if (!container) continue;
    KEELSON_RETURN_IF_ERROR(DropUdp(container->is_v4(), [&](const netlink::Flow& flow) {
      return std::any_of(udp.begin(), udp.end(), [&](const Mapping* mapping) {
        bool address =
            mapping->HasAddress() ? flow.destination == *mapping->host_ip : is_local(flow.destination);
        bool there = flow.replier == *container && flow.replier_port == mapping->container_port;
        return flow.destination_port == mapping->host_port && address && !there;
      });
    }));
  }
  return {};
}

Result<> DropFlowsTo(const std::vector<MappedPort>& ports) {
  for (bool v4 : {true, false}) {
    std::vector<MappedPort> udp;
    for (const MappedPort& port : ports) {
      if (port.protocol == IPPROTO_UDP && port.container.is_v4() == v4) udp.push_back(port);
    }
    if (udp.empty()) continue;
    KEELSON_RETURN_IF_ERROR(DropUdp(v4, [&](const netlink::Flow& flow) {
      return std::any_of(udp.begin(), udp.end(), [&](const MappedPort& port) {
        return flow.replier == port.container && flow.replier_port == port.container_port &&
               flow.destination_port == port.host_port;
      });
    }));
  }
  return {};
}

}  // namespace keelson::cni
