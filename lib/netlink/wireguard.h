// WireGuard devices. kUnimplemented when the kernel lacks the module. Keys are 32 raw bytes.
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
  std::vector<IpPrefix> allowed;  // sorted: sources it may send from, and destinations routed to it
  bool operator==(const WireguardPeer&) const = default;
};

struct WireguardDevice {
  std::string public_key;  // derived from the private key; empty without one
  uint16_t port = 0;
  std::vector<WireguardPeer> peers;
};

struct WireguardChange {
  std::optional<std::string> private_key;
  std::optional<uint16_t> port;
  std::vector<WireguardPeer> set;    // added or changed; a change replaces endpoint and allowed prefixes
  std::vector<std::string> removed;  // public keys
};

// Makes the device and sets it up. `route` is a socket of the routing family.
Result<> CreateWireguard(Socket& route, std::string_view name, int mtu);

// `generic` comes from Socket::OpenGeneric().
Result<WireguardDevice> GetWireguard(Socket& generic, std::string_view name);
Result<> ChangeWireguard(Socket& generic, std::string_view name, const WireguardChange& change);

}  // namespace keelson::netlink
