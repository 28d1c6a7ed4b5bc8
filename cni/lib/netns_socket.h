// Opens a routing socket in a container's namespace without another thread: a plugin has only one.
#pragma once

#include <optional>

#include "lib/linux/netns.h"
#include "lib/netlink/socket.h"

namespace keelson::cni {

inline Result<netlink::Socket> OpenSocketIn(const linux::NetNs& netns) {
  std::optional<netlink::Socket> socket;
  KEELSON_RETURN_IF_ERROR(netns.RunHere([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(socket, netlink::Socket::Open());
    return {};
  }));
  return std::move(*socket);
}

}  // namespace keelson::cni
