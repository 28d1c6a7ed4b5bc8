// The kernel's virtual servers (IPVS). Its module is not everywhere: kUnimplemented then.
#pragma once

#include "lib/netlink/socket.h"

namespace keelson::netlink {

// Removes all of the namespace's virtual servers. `generic` comes from Socket::OpenGeneric().
Result<> FlushVirtualServers(Socket& generic);

}  // namespace keelson::netlink
