// The link that makes the DNS addresses the node's own: a bridge without ports, which every kernel has that
// can run pods (a dummy link would need a module more). What the kernel keeps of a proxy that was killed is
// found again by the link's name.
#pragma once

#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::proxy::dns {

inline constexpr char kDnsLink[] = "kube-dns0";

// The link has these addresses and no others. kAlreadyExists when the name is that of another kind of link.
Result<> SetDnsAddresses(netlink::Socket& socket, const std::vector<IpAddress>& addresses);
// False: there was none. Another kind of link is left alone.
Result<bool> RemoveDnsLink(netlink::Socket& socket);

}  // namespace keelson::proxy::dns
