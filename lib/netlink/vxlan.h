// VXLAN devices that learn nothing and flood nothing: every destination is set explicitly (fdb.h, neigh.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/ip.h"
#include "lib/netlink/link.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct Vxlan {
  uint32_t id = 1;       // network identifier, 24 bits
  uint16_t port = 8472;  // UDP, here and at the peers
  IpAddress local;       // source of outer packets; sets the family of all of them
  bool learning = false;
  auto operator<=>(const Vxlan&) const = default;
};

// Makes the device and sets it up. kAlreadyExists when the name is taken.
Result<> CreateVxlan(Socket& socket, std::string_view name, const Vxlan& vxlan, const MacAddress& mac,
                     int mtu);
// kNotFound when there is no such link, kInvalid when it is not a VXLAN device.
Result<Vxlan> GetVxlan(Socket& socket, std::string_view name);

}  // namespace keelson::netlink
