// WireGuard devices. The kernel's module is not everywhere: kUnimplemented then. Keys are 32 raw bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/ip.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct WireguardPeer {
  std::string public_key;
  IpAddress endpoint;
  uint16_t port = 0;
  std::vector<IpPrefix> allowed;  // sorted: whose packets it sends, and where packets for them go
  bool operator==(const WireguardPeer&) const = default;
};

struct WireguardDevice {
  std::string public_key;  // follows from the private one; empty while there is none
  uint16_t port = 0;
  std::vector<WireguardPeer> peers;
};

struct WireguardChange {
  std::optional<std::string> private_key;
  std::optional<uint16_t> port;
  std::vector<WireguardPeer> set;    // added, or changed: endpoint and allowed prefixes are replaced
  std::vector<std::string> removed;  // public keys
};

// `route` is a socket of the routing family. The device is made up at once.
Result<> CreateWireguard(Socket& route, std::string_view name, int mtu);

// `generic` comes from Socket::OpenGeneric().
Result<WireguardDevice> GetWireguard(Socket& generic, std::string_view name);
Result<> ChangeWireguard(Socket& generic, std::string_view name, const WireguardChange& change);

}  // namespace keelson::netlink
