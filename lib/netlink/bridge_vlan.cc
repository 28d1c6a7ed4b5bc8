#include "lib/netlink/bridge_vlan.h"

#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstring>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

ifinfomsg PortHeader(int index) {
  ifinfomsg header{};
  header.ifi_family = AF_BRIDGE;
  header.ifi_index = index;
  return header;
}

Result<> Modify(Socket& socket, int type, int port_index, const PortVlan& vlan, const std::string& verb) {
  Request request(type, 0, PortHeader(port_index), verb + " VLAN " + std::to_string(vlan.id));
  bridge_vlan_info info{};
  info.vid = vlan.id;
  if (vlan.pvid) info.flags |= BRIDGE_VLAN_INFO_PVID;
  if (vlan.untagged) info.flags |= BRIDGE_VLAN_INFO_UNTAGGED;
  request.Nest(IFLA_AF_SPEC | NLA_F_NESTED, [&] {
    request.PutBytes(IFLA_BRIDGE_VLAN_INFO, {reinterpret_cast<const char*>(&info), sizeof info});
  });
  return request.Run(socket);
}

}  // namespace

Result<> SetVlanFiltering(Socket& socket, int bridge_index, bool on) {
  ifinfomsg header{};
  header.ifi_index = bridge_index;
  Request request(RTM_NEWLINK, 0, header, "switch VLAN filtering");
  request.Nest(IFLA_LINKINFO, [&] {
    request.PutString(IFLA_INFO_KIND, "bridge");
    request.Nest(IFLA_INFO_DATA, [&] { request.PutU8(IFLA_BR_VLAN_FILTERING, on); });
  });
  return request.Run(socket);
}

Result<> AddPortVlan(Socket& socket, int port_index, const PortVlan& vlan) {
  return Modify(socket, RTM_SETLINK, port_index, vlan, "add");
}

Result<> DeletePortVlan(Socket& socket, int port_index, uint16_t id) {
  return Modify(socket, RTM_DELLINK, port_index, {.id = id}, "delete");
}

Result<std::vector<PortVlan>> ListPortVlans(Socket& socket, int port_index) {
  std::vector<PortVlan> out;
  Request request(RTM_GETLINK, NLM_F_DUMP, PortHeader(0), "list VLANs");
  request.PutU32(IFLA_EXT_MASK, RTEXT_FILTER_BRVLAN);
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<ifinfomsg*>(nlmsg_data(header));
    nlattr* spec =
        info->ifi_index == port_index ? nlmsg_find_attr(header, sizeof *info, IFLA_AF_SPEC) : nullptr;
    if (!spec) return;
    nlattr* vlan;
    int rest;
    nla_for_each_nested(vlan, spec, rest) {
      bridge_vlan_info found;
      if (nla_type(vlan) != IFLA_BRIDGE_VLAN_INFO || nla_len(vlan) < static_cast<int>(sizeof found)) continue;
      std::memcpy(&found, nla_data(vlan), sizeof found);
      out.push_back({.id = found.vid,
                     .pvid = (found.flags & BRIDGE_VLAN_INFO_PVID) != 0,
                     .untagged = (found.flags & BRIDGE_VLAN_INFO_UNTAGGED) != 0});
    }
  }));
  return out;
}

}  // namespace keelson::netlink
