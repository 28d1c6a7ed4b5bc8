#include "lib/netlink/tc/clsact.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "lib/netlink/tc/internal.h"

namespace keelson::netlink {
namespace {

Result<bool> HasFilters(Socket& socket, int link_index) {
  bool found = false;
  for (uint32_t side : {TC_H_MIN_INGRESS, TC_H_MIN_EGRESS}) {
    Request request(RTM_GETTFILTER, NLM_F_DUMP, TrafficControl(link_index, TC_H_MAKE(TC_H_CLSACT, side)),
                    "list filters" + OnLink(link_index));
    KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr*) { found = true; }));
  }
  return found;
}

}  // namespace

Result<bool> HasClsact(Socket& socket, int link_index) {
  bool found = false;
  Request request(RTM_GETQDISC, NLM_F_DUMP, TrafficControl(link_index, 0), "list queueing disciplines");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<tcmsg*>(nlmsg_data(header));
    // clsact and ingress have the same parent.
    found = found || (info->tcm_ifindex == link_index && info->tcm_parent == TC_H_CLSACT);
  }));
  return found;
}

Result<bool> RemoveIdleClsact(Socket& socket, int link_index) {
  KEELSON_ASSIGN_OR_RETURN(bool there, HasClsact(socket, link_index));
  if (!there) return false;
  KEELSON_ASSIGN_OR_RETURN(bool used, HasFilters(socket, link_index));
  if (used) return false;
  return Request(RTM_DELQDISC, 0, TrafficControl(link_index, TC_H_CLSACT),
                 "delete clsact" + OnLink(link_index))
      .RunIfThere(socket);
}

}  // namespace keelson::netlink
