#include "lib/netlink/link.h"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#include <cstdio>
#include <cstring>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

std::string Bytes(const MacAddress& mac) { return {mac.bytes().begin(), mac.bytes().end()}; }

nlattr* Find(nlattr* nest, int type) {
  return nest ? nla_find(static_cast<nlattr*>(nla_data(nest)), nla_len(nest), type) : nullptr;
}

void ParseKind(nlattr* info, Link& link) {
  auto flag = [](nlattr* attribute) { return attribute && nla_get_u8(attribute) != 0; };
  if (nlattr* kind = Find(info, IFLA_INFO_KIND)) link.kind = nla_get_string(kind);
  if (link.kind == "bridge") {
    link.vlan_filtering = flag(Find(Find(info, IFLA_INFO_DATA), IFLA_BR_VLAN_FILTERING));
  }
  nlattr* port_of = Find(info, IFLA_INFO_SLAVE_KIND);
  if (!port_of || std::strcmp(nla_get_string(port_of), "bridge") != 0) return;
  nlattr* port = Find(info, IFLA_INFO_SLAVE_DATA);
  link.hairpin = flag(Find(port, IFLA_BRPORT_MODE));
  link.isolated = flag(Find(port, IFLA_BRPORT_ISOLATED));
}

Link Parse(nlmsghdr* header) {
  auto* info = static_cast<ifinfomsg*>(nlmsg_data(header));
  nlattr* attributes[IFLA_MAX + 1];
  Link link;
  link.index = info->ifi_index;
  link.up = info->ifi_flags & IFF_UP;
  link.loopback = info->ifi_flags & IFF_LOOPBACK;
  if (nlmsg_parse(header, sizeof *info, attributes, IFLA_MAX, nullptr) < 0) return link;
  auto number = [&](int type) {
    return attributes[type] ? static_cast<int>(nla_get_u32(attributes[type])) : 0;
  };
  if (attributes[IFLA_IFNAME]) link.name = nla_get_string(attributes[IFLA_IFNAME]);
  link.mtu = number(IFLA_MTU);
  link.master = number(IFLA_MASTER);
  link.peer_index = number(IFLA_LINK);
  link.promisc = (info->ifi_flags & IFF_PROMISC) || number(IFLA_PROMISCUITY) > 0;
  if (attributes[IFLA_OPERSTATE]) link.oper_up = nla_get_u8(attributes[IFLA_OPERSTATE]) == IF_OPER_UP;
  if (nlattr* address = attributes[IFLA_ADDRESS]; address && nla_len(address) == 6) {
    std::array<uint8_t, 6> mac;
    std::memcpy(mac.data(), nla_data(address), mac.size());
    link.mac = MacAddress(mac);
  }
  if (attributes[IFLA_IFALIAS]) link.alias = nla_get_string(attributes[IFLA_IFALIAS]);
  ParseKind(attributes[IFLA_LINKINFO], link);
  return link;
}

Result<Link> Get(Socket& socket, Request& request, std::string_view what) {
  std::optional<Link> found;
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) { found = Parse(header); }));
  if (!found) return Error(Code::kNotFound, std::string(what) + ": no answer");
  return std::move(*found);
}

void PutEnd(Request& request, const VethEnd& end, int mtu) {
  request.PutString(IFLA_IFNAME, end.name);
  if (end.mac) request.PutBytes(IFLA_ADDRESS, Bytes(*end.mac));
  if (mtu > 0) request.PutU32(IFLA_MTU, static_cast<uint32_t>(mtu));
  if (end.netns_fd >= 0) request.PutU32(IFLA_NET_NS_FD, static_cast<uint32_t>(end.netns_fd));
  if (end.master > 0) request.PutU32(IFLA_MASTER, static_cast<uint32_t>(end.master));
}

ifinfomsg Header(bool up) {
  ifinfomsg header{};
  if (up) header.ifi_flags = header.ifi_change = IFF_UP;
  return header;
}

}  // namespace

Result<MacAddress> MacAddress::Parse(std::string_view text) {
  std::array<uint8_t, 6> bytes;
  char rest = 0;
  if (std::sscanf(std::string(text).c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &bytes[0], &bytes[1],
                  &bytes[2], &bytes[3], &bytes[4], &bytes[5], &rest) != 6) {
    return Error(Code::kInvalid, "invalid MAC address: " + std::string(text));
  }
  return MacAddress(bytes);
}

std::string MacAddress::ToString() const {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", bytes_[0], bytes_[1], bytes_[2],
                bytes_[3], bytes_[4], bytes_[5]);
  return text;
}

Result<Link> GetLink(Socket& socket, std::string_view name) {
  std::string what = "get link " + std::string(name);
  if (name.empty() || name.size() >= IFNAMSIZ) return Error::FromErrno(ENODEV, what);
  Request request(RTM_GETLINK, 0, ifinfomsg{}, what);
  request.PutString(IFLA_IFNAME, name);
  return Get(socket, request, what);
}

Result<Link> GetLink(Socket& socket, int index) {
  std::string what = "get link with index " + std::to_string(index);
  ifinfomsg header{};
  header.ifi_index = index;
  Request request(RTM_GETLINK, 0, header, what);
  return Get(socket, request, what);
}

Result<std::vector<Link>> ListLinks(Socket& socket) {
  std::vector<Link> links;
  Request request(RTM_GETLINK, NLM_F_DUMP, ifinfomsg{}, "list links");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) { links.push_back(Parse(header)); }));
  return links;
}

Result<> CreateVeth(Socket& socket, const VethEnd& end, const VethEnd& peer, int mtu) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, Header(end.up), "create veth " + end.name);
  PutEnd(request, end, mtu);
  request.Nest(IFLA_LINKINFO, [&] {
    request.PutString(IFLA_INFO_KIND, "veth");
    request.Nest(IFLA_INFO_DATA, [&] {
      request.Nest(VETH_INFO_PEER, [&] {
        request.PutRaw(Header(false));
        PutEnd(request, peer, mtu);
      });
    });
  });
  return request.Run(socket);
}

Result<> CreateBridge(Socket& socket, std::string_view name, int mtu, std::optional<MacAddress> mac) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, Header(false),
                  "create bridge " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  if (mtu > 0) request.PutU32(IFLA_MTU, static_cast<uint32_t>(mtu));
  if (mac) request.PutBytes(IFLA_ADDRESS, Bytes(*mac));
  request.Nest(IFLA_LINKINFO, [&] { request.PutString(IFLA_INFO_KIND, "bridge"); });
  return request.Run(socket);
}

Result<> CreateDummy(Socket& socket, std::string_view name) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, Header(false), "create dummy " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  request.Nest(IFLA_LINKINFO, [&] { request.PutString(IFLA_INFO_KIND, "dummy"); });
  Result<> made = request.Run(socket);
  if (!made && made.error().errnum() == EOPNOTSUPP) {
    return Error(Code::kUnimplemented, "this kernel has no dummy interfaces: load the module dummy",
                 EOPNOTSUPP);
  }
  return made;
}

Result<> ChangeLink(Socket& socket, int index, const LinkChange& change) {
  ifinfomsg header{};
  header.ifi_index = index;
  auto flag = [&](const std::optional<bool>& wanted, unsigned bit) {
    if (!wanted) return;
    header.ifi_change |= bit;
    if (*wanted) header.ifi_flags |= bit;
  };
  flag(change.up, IFF_UP);
  flag(change.promisc, IFF_PROMISC);
  Request request(RTM_NEWLINK, 0, header, "change link with index " + std::to_string(index));
  if (change.mtu) request.PutU32(IFLA_MTU, static_cast<uint32_t>(*change.mtu));
  if (change.master) request.PutU32(IFLA_MASTER, static_cast<uint32_t>(*change.master));
  if (change.mac) request.PutBytes(IFLA_ADDRESS, Bytes(*change.mac));
  if (change.name) request.PutString(IFLA_IFNAME, *change.name);
  if (change.alias) request.PutString(IFLA_IFALIAS, *change.alias);
  if (change.netns_fd) request.PutU32(IFLA_NET_NS_FD, static_cast<uint32_t>(*change.netns_fd));
  return request.Run(socket);
}

Result<> ChangePort(Socket& socket, int index, const PortChange& change) {
  ifinfomsg header{};
  header.ifi_family = AF_BRIDGE;
  header.ifi_index = index;
  Request request(RTM_SETLINK, 0, header, "change bridge port with index " + std::to_string(index));
  request.Nest(IFLA_PROTINFO | NLA_F_NESTED, [&] {
    if (change.hairpin) request.PutU8(IFLA_BRPORT_MODE, *change.hairpin);
    if (change.isolated) request.PutU8(IFLA_BRPORT_ISOLATED, *change.isolated);
  });
  return request.Run(socket);
}

Result<> DeleteLink(Socket& socket, int index) {
  ifinfomsg header{};
  header.ifi_index = index;
  return Request(RTM_DELLINK, 0, header, "delete link with index " + std::to_string(index)).Run(socket);
}

Result<bool> DeleteLink(Socket& socket, std::string_view name) {
  Request request(RTM_DELLINK, 0, ifinfomsg{}, "delete link " + std::string(name));
  request.PutString(IFLA_IFNAME, name);
  return request.RunIfThere(socket);
}

}  // namespace keelson::netlink
