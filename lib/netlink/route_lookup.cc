#include "lib/netlink/route_lookup.h"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

std::optional<IpAddress> AddressOf(nlmsghdr* header, int type) {
  nlattr* found = nlmsg_find_attr(header, sizeof(rtmsg), type);
  if (!found || (nla_len(found) != 4 && nla_len(found) != 16)) return std::nullopt;
  return IpAddress::FromBytes({static_cast<char*>(nla_data(found)), static_cast<size_t>(nla_len(found))});
}

}  // namespace

Result<Route> LookUpRoute(Socket& socket, const IpAddress& destination) {
  rtmsg header{};
  header.rtm_family = destination.is_v4() ? AF_INET : AF_INET6;
  header.rtm_dst_len = static_cast<uint8_t>(destination.bits());
  Request request(RTM_GETROUTE, 0, header, "look up route to " + destination.ToString());
  request.PutBytes(RTA_DST, destination.bytes());
  Route route{.destination = IpPrefix::Host(destination)};
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* answer) {
    if (nlattr* out = nlmsg_find_attr(answer, sizeof(rtmsg), RTA_OIF)) {
      route.link_index = static_cast<int>(nla_get_u32(out));
    }
    route.gateway = AddressOf(answer, RTA_GATEWAY);
    route.source = AddressOf(answer, RTA_PREFSRC);
  }));
  return route;
}

}  // namespace keelson::netlink
