#include "proxy/dns/dns_link.h"

#include <algorithm>

#include "lib/netlink/addr.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::dns {
namespace {

constexpr char kKind[] = "bridge";

Result<netlink::Link> EnsureLink(netlink::Socket& socket) {
  Result<netlink::Link> link = netlink::GetLink(socket, kDnsLink);
  if (!link && link.error().code() == Code::kNotFound) {
    KEELSON_RETURN_IF_ERROR(netlink::CreateBridge(socket, kDnsLink, 0, std::nullopt));
    link = netlink::GetLink(socket, kDnsLink);
  }
  if (link && link->kind != kKind) {
    return Error(Code::kAlreadyExists, std::string(kDnsLink) + " is a link of another kind: " + link->kind);
  }
  return link;
}

}  // namespace

Result<> SetDnsAddresses(netlink::Socket& socket, const std::vector<IpAddress>& addresses) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Link link, EnsureLink(socket));
  if (!link.up) KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, link.index));
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Address> found, netlink::ListAddresses(socket, link.index));
  std::vector<IpAddress> missing = addresses;
  for (const netlink::Address& address : found) {
    if (std::erase(missing, address.prefix.address()) > 0 || address.link_scope) continue;
    KEELSON_RETURN_IF_ERROR(netlink::DeleteAddress(socket, link.index, address.prefix));
  }
  for (const IpAddress& ip : missing) {
    KEELSON_RETURN_IF_ERROR(netlink::AddAddress(socket, link.index, IpPrefix::Host(ip)));
  }
  return {};
}

Result<bool> RemoveDnsLink(netlink::Socket& socket) {
  Result<netlink::Link> link = netlink::GetLink(socket, kDnsLink);
  if (!link && link.error().code() == Code::kNotFound) return false;
  KEELSON_RETURN_IF_ERROR(link);
  if (link->kind != kKind) return false;
  return netlink::DeleteLink(socket, kDnsLink);
}

}  // namespace keelson::proxy::dns
