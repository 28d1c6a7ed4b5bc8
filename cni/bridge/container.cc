#include "cni/bridge/container.h"

#include <algorithm>

#include "lib/netlink/addr.h"
#include "lib/netlink/route.h"

namespace keelson::cni {
namespace {

netlink::Route ToRoute(const RouteConfig& config, const netlink::Link& link, const AddResult& result) {
  netlink::Route route{.destination = config.destination.Masked(), .gateway = config.gateway};
  route.link_index = link.index;
  route.metric = config.priority;
  route.mtu = config.mtu;
  route.advmss = config.advmss;
  if (config.table > 0) route.table = config.table;
  if (config.scope) route.scope = *config.scope;
  for (const IpConfig& ip : result.ips) {
    bool link_only = config.scope && *config.scope == 253;  // RT_SCOPE_LINK has no gateway
    if (!route.gateway && !link_only && ip.gateway && ip.address.is_v4() == config.destination.is_v4()) {
      route.gateway = ip.gateway;
    }
  }
  return route;
}

}  // namespace

netlink::MacAddress MacFor(const IpAddress& address) {
  std::string_view low = address.bytes().substr(address.bytes().size() - 4);
  return netlink::MacAddress({0x0a, static_cast<uint8_t>(address.is_v4() ? 0x58 : 0x5a),
                              static_cast<uint8_t>(low[0]), static_cast<uint8_t>(low[1]),
                              static_cast<uint8_t>(low[2]), static_cast<uint8_t>(low[3])});
}

Outcome<> ConfigureContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result) {
  for (const IpConfig& ip : result.ips) {
    if (ip.address.is_v4()) KEELSON_RETURN_IF_ERROR(netlink::AddAddress(container, link.index, ip.address));
  }
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(container, link.index));
  // The kernel removes IPv6 addresses when an interface goes down, so add them while it is up.
  for (const IpConfig& ip : result.ips) {
    if (!ip.address.is_v4()) KEELSON_RETURN_IF_ERROR(netlink::AddAddress(container, link.index, ip.address));
  }
  for (const RouteConfig& route : result.routes) {
    Result<> added = netlink::AddRoute(container, ToRoute(route, link, result));
    if (!added && !added.error().Is(Code::kAlreadyExists)) return added.error();
  }
  return {};
}

Outcome<> CheckContainer(netlink::Socket& container, const netlink::Link& link, const AddResult& result) {
  KEELSON_ASSIGN_OR_RETURN(auto addresses, netlink::ListAddresses(container, link.index));
  for (const IpConfig& ip : result.ips) {
    bool found = std::any_of(addresses.begin(), addresses.end(),
                             [&](const netlink::Address& a) { return a.prefix == ip.address; });
    if (!found) return CniError{kCheckFailed, link.name + " lacks address " + ip.address.ToString(), ""};
  }
  for (const RouteConfig& config : result.routes) {
    netlink::Route wanted = ToRoute(config, link, result);
    KEELSON_ASSIGN_OR_RETURN(auto routes, netlink::ListRoutes(container, wanted.table));
    bool found = std::any_of(routes.begin(), routes.end(), [&](const netlink::Route& r) {
      return r.destination == wanted.destination && r.gateway == wanted.gateway;
    });
    if (!found) {
      return CniError{kCheckFailed, "route to " + wanted.destination.ToString() + " is missing", ""};
    }
  }
  return {};
}

}  // namespace keelson::cni
