#include "lib/netlink/addr.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

#include "lib/netlink/request_internal.h"

namespace keelson::netlink {
namespace {

bool LinkScope(const IpAddress& address) { return address.IsLinkLocal() || address.IsLoopback(); }

Result<> Modify(Socket& socket, int type, int flags, int link_index, const IpPrefix& prefix,
                std::string_view verb) {
  ifaddrmsg header{};
  header.ifa_family = prefix.is_v4() ? AF_INET : AF_INET6;
  header.ifa_prefixlen = static_cast<uint8_t>(prefix.length());
  header.ifa_index = static_cast<uint32_t>(link_index);
  header.ifa_scope = LinkScope(prefix.address()) ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  Request request(type, flags, header, std::string(verb) + " address " + prefix.ToString());
  request.PutBytes(IFA_LOCAL, prefix.address().bytes());
  request.PutBytes(IFA_ADDRESS, prefix.address().bytes());
  if (prefix.is_v4()) {
    if (prefix.length() < 31) request.PutBytes(IFA_BROADCAST, prefix.Last().bytes());
  } else {
    request.PutU32(IFA_FLAGS, IFA_F_NODAD);
  }
  return request.Run(socket);
}

}  // namespace

Result<> AddAddress(Socket& socket, int link_index, const IpPrefix& prefix) {
  return Modify(socket, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, link_index, prefix, "add");
}

Result<> DeleteAddress(Socket& socket, int link_index, const IpPrefix& prefix) {
  Result<> gone = Modify(socket, RTM_DELADDR, 0, link_index, prefix, "delete");
  if (!gone && gone.error().errnum() == EADDRNOTAVAIL) {
    return Error(Code::kNotFound, gone.error().message(), EADDRNOTAVAIL);
  }
  return gone;
}

Result<std::vector<Address>> ListAddresses(Socket& socket, int link_index) {
  std::vector<Address> out;
  Request request(RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{}, "list addresses");
  KEELSON_RETURN_IF_ERROR(request.Run(socket, [&](nlmsghdr* header) {
    auto* info = static_cast<ifaddrmsg*>(nlmsg_data(header));
    nlattr* attributes[IFA_MAX + 1];
    if (link_index != 0 && static_cast<int>(info->ifa_index) != link_index) return;
    if (nlmsg_parse(header, sizeof *info, attributes, IFA_MAX, nullptr) < 0) return;
    // On a point-to-point link IFA_ADDRESS is the peer's; IFA_LOCAL, where present, is always the local
    // one.
    nlattr* ours = attributes[IFA_LOCAL] ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
    if (!ours || (nla_len(ours) != 4 && nla_len(ours) != 16)) return;
    IpAddress address =
        IpAddress::FromBytes({static_cast<char*>(nla_data(ours)), static_cast<size_t>(nla_len(ours))});
    out.push_back({.link_index = static_cast<int>(info->ifa_index),
                   .prefix = IpPrefix(address, info->ifa_prefixlen),
                   .link_scope = info->ifa_scope >= RT_SCOPE_LINK});
  }));
  return out;
}

}  // namespace keelson::netlink
