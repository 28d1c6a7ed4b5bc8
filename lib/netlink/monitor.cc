#include "lib/netlink/monitor.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstring>
#include <optional>

#include "lib/base/ip.h"

namespace keelson::netlink {
namespace {

// Attribute `type` of a message whose fixed part is a Header.
template <typename Header>
const rtattr* Find(const nlmsghdr* message, int type) {
  auto left = static_cast<int>(message->nlmsg_len) - static_cast<int>(NLMSG_SPACE(sizeof(Header)));
  auto* at = reinterpret_cast<const rtattr*>(reinterpret_cast<const char*>(NLMSG_DATA(message)) +
                                             NLMSG_ALIGN(sizeof(Header)));
  for (; RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type == type) return at;
  }
  return nullptr;
}

int Number(const rtattr* attribute, int otherwise) {
  if (!attribute || RTA_PAYLOAD(attribute) < sizeof(uint32_t)) return otherwise;
  uint32_t value;
  std::memcpy(&value, RTA_DATA(attribute), sizeof value);
  return static_cast<int>(value);
}

bool LinkLocal(const rtattr* address) {
  if (!address || (RTA_PAYLOAD(address) != 4 && RTA_PAYLOAD(address) != 16)) return false;
  IpAddress ip = IpAddress::FromBytes({static_cast<const char*>(RTA_DATA(address)), RTA_PAYLOAD(address)});
  return ip.IsLinkLocal() || ip.IsMulticast();
}

std::optional<KernelEvent> Parse(const nlmsghdr* message) {
  KernelEvent event;
  event.author = message->nlmsg_pid;
  event.removed = message->nlmsg_type == RTM_DELLINK || message->nlmsg_type == RTM_DELADDR ||
                  message->nlmsg_type == RTM_DELROUTE || message->nlmsg_type == RTM_DELNEIGH;
  switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK: {
      event.kind = KernelEvent::Kind::kLink;
      event.link_index = static_cast<const ifinfomsg*>(NLMSG_DATA(message))->ifi_index;
      if (const rtattr* name = Find<ifinfomsg>(message, IFLA_IFNAME)) {
        event.link_name = static_cast<const char*>(RTA_DATA(name));
      }
      return event;
    }
    case RTM_NEWADDR:
    case RTM_DELADDR:
      event.kind = KernelEvent::Kind::kAddress;
      event.link_index = static_cast<int>(static_cast<const ifaddrmsg*>(NLMSG_DATA(message))->ifa_index);
      event.link_local = LinkLocal(Find<ifaddrmsg>(message, IFA_ADDRESS));
      return event;
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      event.kind = KernelEvent::Kind::kRoute;
      event.link_index = Number(Find<rtmsg>(message, RTA_OIF), 0);
      event.table =
          Number(Find<rtmsg>(message, RTA_TABLE), static_cast<const rtmsg*>(NLMSG_DATA(message))->rtm_table);
      event.link_local = LinkLocal(Find<rtmsg>(message, RTA_DST));
      return event;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      event.kind = KernelEvent::Kind::kNeighbor;
      event.link_index = static_cast<const ndmsg*>(NLMSG_DATA(message))->ndm_ifindex;
      return event;
    case RTM_DELTFILTER:
    case RTM_DELQDISC:
      event.kind = KernelEvent::Kind::kFilter;
      event.removed = true;
      event.link_index = static_cast<const tcmsg*>(NLMSG_DATA(message))->tcm_ifindex;
      return event;
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<Monitor> Monitor::Open() {
  KEELSON_ASSIGN_OR_RETURN(linux::NetlinkEvents events, linux::NetlinkEvents::Open(NETLINK_ROUTE));
  for (int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
                    RTNLGRP_IPV6_ROUTE, RTNLGRP_NEIGH, RTNLGRP_TC}) {
    KEELSON_RETURN_IF_ERROR(events.Listen(group, true));
  }
  return Monitor(std::move(events));
}

Result<std::vector<KernelEvent>> Monitor::Wait(std::stop_token stop, std::chrono::milliseconds timeout) {
  std::vector<KernelEvent> out;
  KEELSON_RETURN_IF_ERROR(events_.Wait(stop, timeout, [&](const nlmsghdr* message) {
    std::optional<KernelEvent> event = message ? Parse(message) : KernelEvent();
    if (event) out.push_back(std::move(*event));
    return event.has_value();
  }));
  return out;
}

}  // namespace keelson::netlink
