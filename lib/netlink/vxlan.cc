#include "lib/netlink/vxlan.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <optional>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

nlattr* Find(nlattr* nest, int type) {
  return nest ? nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type) : nullptr;
}

std::optional<Vxlan> Parse(nlmsghdr* header) {
  nlattr* info = nlmsg_find_attr(header, sizeof(ifinfomsg), IFLA_LINKINFO);
  nlattr* kind = Find(info, IFLA_INFO_KIND);
  nlattr* data = Find(info, IFLA_INFO_DATA);
  if (!kind || std::string_view(nla_get_string(kind)) != "vxlan" || !data) return std::nullopt;
  Vxlan out;
  if (nlattr* id = Find(data, IFLA_VXLAN_ID)) out.id = nla_get_u32(id);
  if (nlattr* port = Find(data, IFLA_VXLAN_PORT)) out.port = ntohs(nla_get_u16(port));
  if (nlattr* learning = Find(data, IFLA_VXLAN_LEARNING)) out.learning = nla_get_u8(learning) != 0;
  nlattr* local = Find(data, IFLA_VXLAN_LOCAL);
  if (!local) local = Find(data, IFLA_VXLAN_LOCAL6);
  if (local && (nla_len(local) == 4 || nla_len(local) == 16)) {
    out.local =
        IpAddress::FromBytes({static_cast<char*>(nla_data(local)), static_cast<size_t>(nla_len(local))});
  }
  return out;
}

}  // namespace

Result<> CreateVxlan(Socket& socket, std::string_view name, const Vxlan& vxlan, const MacAddress& mac,
                     int mtu) {
  ifinfomsg header{};
  header.ifi_flags = header.ifi_change = IFF_UP;
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, header, "create vxlan " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  request.PutBytes(IFLA_ADDRESS, std::string(mac.bytes().begin(), mac.bytes().end()));
  if (mtu > 0) request.PutU32(IFLA_MTU, static_cast<uint32_t>(mtu));
  uint16_t port = htons(vxlan.port);
  request.Nest(IFLA_LINKINFO, [&] {
    request.PutString(IFLA_INFO_KIND, "vxlan");
    request.Nest(IFLA_INFO_DATA, [&] {
      request.PutU32(IFLA_VXLAN_ID, vxlan.id);
      request.PutBytes(IFLA_VXLAN_PORT, {reinterpret_cast<const char*>(&port), sizeof port});
      request.PutBytes(vxlan.local.is_v4() ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, vxlan.local.bytes());
      request.PutU8(IFLA_VXLAN_LEARNING, vxlan.learning);
    });
  });
  return request.Run(socket);
}

Result<Vxlan> GetVxlan(Socket& socket, std::string_view name) {
  std::string what = "get vxlan " + std::string(name);
  Request request(RTM_GETLINK, 0, ifinfomsg{}, what);
  request.PutString(IFLA_IFNAME, name);
  std::optional<Vxlan> found;
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) { found = Parse(header); }));
  if (!found) return Error(Code::kInvalid, what + ": a link of another kind");
  return *found;
}

}  // namespace keelson::netlink
