// What an interface's driver supports for XDP programs. `generic` comes from Socket::OpenGeneric().
#pragma once

#include <cstdint>

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// NETDEV_XDP_ACT_... of linux/netdev.h (Linux 6.3).
enum XdpFeature : uint64_t {
  kXdpBasic = 1,     // runs programs, and sends frames back out of the same device
  kXdpRedirect = 2,  // hands frames to other devices
  kXdpReceive = 4,   // takes frames from other devices; a veth also its own back
};

// The interface's features now. kUnimplemented before Linux 6.3; kNotFound: no such interface.
Result<uint64_t> XdpFeatures(Socket& generic, int link_index);

}  // namespace keelson::netlink
