// What drivers can do for BPF programs at them (XDP). `generic` comes from Socket::OpenGeneric().
#pragma once

#include <cstdint>

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// NETDEV_XDP_ACT_... of linux/netdev.h (Linux 6.3).
enum XdpFeature : uint64_t {
  kXdpBasic = 1,     // runs programs, and sends out again by the same device
  kXdpRedirect = 2,  // hands frames to other devices
  kXdpReceive = 4,   // takes frames of other devices; of a veth also its own again
};

// At this moment. kUnimplemented where the kernel does not tell (before 6.3); kNotFound: no such interface.
Result<uint64_t> XdpFeatures(Socket& generic, int link_index);

}  // namespace keelson::netlink
