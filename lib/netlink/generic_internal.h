// Internal to lib/netlink: families of generic netlink.
#pragma once

#include <string_view>

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// The number of the family with this name; kUnimplemented if the kernel does not have it.
Result<int> GenericFamily(Socket& generic, std::string_view name);

}  // namespace keelson::netlink
