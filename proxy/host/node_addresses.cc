#include "proxy/host/node_addresses.h"

#include <net/if.h>

#include <algorithm>

#include "lib/netlink/addr.h"
#include "proxy/ipvs/kernel.h"

namespace keelson::proxy {

Result<std::vector<IpAddress>> NodePortAddresses(const std::vector<std::string>& wanted,
                                                 const std::vector<IpAddress>& node_ips) {
  bool primary = wanted.empty() || wanted[0] == "primary";
  if (primary && !node_ips.empty()) return node_ips;
  std::vector<IpPrefix> cidrs;
  for (const std::string& text : wanted) {
    if (text == "primary") continue;
    KEELSON_ASSIGN_OR_RETURN(IpPrefix cidr, IpPrefix::Parse(text));
    cidrs.push_back(cidr);
  }
  KEELSON_ASSIGN_OR_RETURN(std::vector<IpAddress> out, OwnAddresses());
  std::erase_if(out, [&](const IpAddress& ip) {
    return !primary &&
           std::none_of(cidrs.begin(), cidrs.end(), [&](const IpPrefix& c) { return c.Contains(ip); });
  });
  return out;
}

Result<std::vector<IpAddress>> OwnAddresses() {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Address> addresses, netlink::ListAddresses(socket));
  const int services = IpvsDeviceIndex();
  std::vector<IpAddress> out;
  for (const netlink::Address& address : addresses) {
    const IpAddress& ip = address.prefix.address();
    if (!ip.IsLoopback() && !ip.IsLinkLocal() && address.link_index != services) out.push_back(ip);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

int IpvsDeviceIndex() { return static_cast<int>(::if_nametoindex(ipvs::kDevice)); }

}  // namespace keelson::proxy
