#include "lib/netlink/route.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "lib/netlink/requests_internal.h"

namespace keelson::netlink {
namespace {

std::optional<IpAddress> AddressOf(nlattr* attribute) {
  if (!attribute || (nla_len(attribute) != 4 && nla_len(attribute) != 16)) return std::nullopt;
  return IpAddress::FromBytes(
      {static_cast<char*>(nla_data(attribute)), static_cast<size_t>(nla_len(attribute))});
}

std::optional<Route> Parse(nlmsghdr* header, int table) {
  auto* info = static_cast<rtmsg*>(nlmsg_data(header));
  nlattr* attributes[RTA_MAX + 1];
  if (info->rtm_type != RTN_UNICAST || (info->rtm_family != AF_INET && info->rtm_family != AF_INET6) ||
      nlmsg_parse(header, sizeof *info, attributes, RTA_MAX, nullptr) < 0) {
    return std::nullopt;
  }
  auto number = [&](int type) {
    return attributes[type] ? static_cast<int>(nla_get_u32(attributes[type])) : 0;
  };
  Route route;
  route.table = attributes[RTA_TABLE] ? number(RTA_TABLE) : info->rtm_table;
  if (route.table != table) return std::nullopt;
  IpAddress zero = IpAddress::FromBytes(std::string(info->rtm_family == AF_INET ? 4 : 16, '\0'));
  route.destination = IpPrefix(AddressOf(attributes[RTA_DST]).value_or(zero), info->rtm_dst_len);
  route.gateway = AddressOf(attributes[RTA_GATEWAY]);
  route.source = AddressOf(attributes[RTA_PREFSRC]);
  route.link_index = number(RTA_OIF);
  route.metric = number(RTA_PRIORITY);
  route.scope = info->rtm_scope;
  route.onlink = info->rtm_flags & RTNH_F_ONLINK;
  route.protocol = info->rtm_protocol;
  if (nlattr* metrics = attributes[RTA_METRICS]) {
    auto metric = [&](int type) {
      nlattr* found = nla_find(static_cast<nlattr*>(nla_data(metrics)), nla_len(metrics), type);
      return found ? static_cast<int>(nla_get_u32(found)) : 0;
    };
    route.mtu = metric(RTAX_MTU);
    route.advmss = metric(RTAX_ADVMSS);
  }
  return route;
}

}  // namespace

std::unique_ptr<Request> RouteRequest(int type, int flags, const Route& route, std::string_view verb) {
  rtmsg header{};
  header.rtm_protocol = static_cast<uint8_t>(route.protocol);
  header.rtm_family = route.destination.is_v4() ? AF_INET : AF_INET6;
  header.rtm_dst_len = static_cast<uint8_t>(route.destination.length());
  header.rtm_table = RT_TABLE_UNSPEC;
  if (type == RTM_DELROUTE) {
    header.rtm_scope = RT_SCOPE_NOWHERE;
  } else {
    if (route.protocol == 0) header.rtm_protocol = RTPROT_STATIC;
    header.rtm_type = RTN_UNICAST;
    bool universe = route.gateway || !route.destination.is_v4();
    header.rtm_scope = universe ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
    if (route.onlink) header.rtm_flags |= RTNH_F_ONLINK;
  }
  if (route.scope >= 0) header.rtm_scope = static_cast<uint8_t>(route.scope);
  auto made = std::make_unique<Request>(type, flags, header,
                                        std::string(verb) + " route to " + route.destination.ToString());
  Request& request = *made;
  std::string network(route.destination.Network().bytes());
  request.PutBytes(RTA_DST, network);
  request.PutU32(RTA_TABLE, static_cast<uint32_t>(route.table));
  if (route.gateway) request.PutBytes(RTA_GATEWAY, route.gateway->bytes());
  if (route.source) request.PutBytes(RTA_PREFSRC, route.source->bytes());
  if (route.link_index > 0) request.PutU32(RTA_OIF, static_cast<uint32_t>(route.link_index));
  if (route.metric > 0) request.PutU32(RTA_PRIORITY, static_cast<uint32_t>(route.metric));
  if (type != RTM_DELROUTE && (route.mtu > 0 || route.advmss > 0)) {
    request.Nest(RTA_METRICS, [&] {
      if (route.mtu > 0) request.PutU32(RTAX_MTU, static_cast<uint32_t>(route.mtu));
      if (route.advmss > 0) request.PutU32(RTAX_ADVMSS, static_cast<uint32_t>(route.advmss));
    });
  }
  return made;
}

Result<> AddRoute(Socket& socket, const Route& route) {
  return RouteRequest(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, route, "add")->Run(socket);
}

Result<> ReplaceRoute(Socket& socket, const Route& route) {
  return RouteRequest(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route, "replace")->Run(socket);
}

Result<> DeleteRoute(Socket& socket, const Route& route) {
  return RouteRequest(RTM_DELROUTE, 0, route, "delete")->Run(socket);
}

Result<std::vector<Route>> ListRoutes(Socket& socket, int table) {
  std::vector<Route> out;
  Request request(RTM_GETROUTE, NLM_F_DUMP, rtmsg{}, "list routes");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    if (std::optional<Route> route = Parse(header, table)) out.push_back(std::move(*route));
  }));
  return out;
}

}  // namespace keelson::netlink
