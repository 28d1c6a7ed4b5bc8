// The link that gives the node the DNS addresses: a bridge without ports, which every kernel that runs pods supports
// (a dummy link needs another module). After a kill the next proxy finds the link by its name.
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::proxy::dns {

inline constexpr char kDnsLink[] = "kube-dns0";

// Gives the link exactly these addresses. kAlreadyExists when a link of another kind has the name.
Result<> SetDnsAddresses(netlink::Socket& socket, const std::vector<IpAddress>& addresses);
// Removes the link. False: it did not exist. A link of another kind stays.
Result<bool> RemoveDnsLink(netlink::Socket& socket);

}  // namespace keelson::proxy::dns
