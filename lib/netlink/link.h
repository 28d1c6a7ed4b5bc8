// Network interfaces (rtnetlink(7), RTM_*LINK).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/netlink/socket.h"

namespace keelson::netlink {

class MacAddress {
 public:
  MacAddress() = default;
  explicit MacAddress(std::array<uint8_t, 6> bytes) : bytes_(bytes) {}
  static Result<MacAddress> Parse(std::string_view text);  // 0a:58:0a:01:02:03
  std::string ToString() const;
  const std::array<uint8_t, 6>& bytes() const { return bytes_; }
  auto operator<=>(const MacAddress&) const = default;

 private:
  std::array<uint8_t, 6> bytes_{};
};

struct Link {
  int index = 0;
  std::string name;
  std::string kind;  // veth, bridge, ...; empty for physical ones and lo
  MacAddress mac;
  int mtu = 0;
  bool up = false;       // administratively
  bool oper_up = false;  // able to pass packets: has carrier, and as a bridge port its port state allows it
  bool loopback = false;
  bool promisc = false;
  int master = 0;                          // index of the bridge it is a port of; 0: none
  int peer_index = 0;                      // veth: index of the other end, in that end's namespace
  bool hairpin = false, isolated = false;  // for a bridge port, see PortChange
  bool vlan_filtering = false;             // for a bridge
  std::string alias;
};

// kNotFound when there is no such link.
Result<Link> GetLink(Socket& socket, std::string_view name);
Result<Link> GetLink(Socket& socket, int index);
Result<std::vector<Link>> ListLinks(Socket& socket);

struct VethEnd {
  std::string name;
  std::optional<MacAddress> mac;  // else random
  int netns_fd = -1;              // else the socket's namespace
  int master = 0;
  bool up = false;  // of the first end only: the kernel opens the peer before it has something to talk to
};
// kAlreadyExists when either name is taken. `mtu` 0: the kernel's default.
Result<> CreateVeth(Socket& socket, const VethEnd& end, const VethEnd& peer, int mtu);
// Makes a bridge that is down. Without `mac` it takes the lowest address of its ports, which changes over
// time.
Result<> CreateBridge(Socket& socket, std::string_view name, int mtu, std::optional<MacAddress> mac);

// Makes a dummy interface, which holds addresses and sends nothing. It is down, and has ARP off.
// kUnimplemented where the kernel lacks the driver.
Result<> CreateDummy(Socket& socket, std::string_view name);

// Changes to a link, in one message to the kernel. Fields that are not set stay as they are.
struct LinkChange {
  std::optional<bool> up;
  std::optional<bool> promisc;
  std::optional<int> mtu;
  std::optional<int> master;  // 0: leave the bridge
  std::optional<MacAddress> mac;
  std::optional<std::string> name;  // the link must be down
  std::optional<int> netns_fd;      // moves it; addresses and routes are lost
  std::optional<std::string> alias;
};
Result<> ChangeLink(Socket& socket, int index, const LinkChange& change);
inline Result<> SetUp(Socket& socket, int index) { return ChangeLink(socket, index, {.up = true}); }

// Settings of a bridge port.
struct PortChange {
  std::optional<bool> hairpin;   // send frames back through the port they came in by
  std::optional<bool> isolated;  // no frames between isolated ports
};
Result<> ChangePort(Socket& socket, int index, const PortChange& change);

Result<> DeleteLink(Socket& socket, int index);                  // a veth takes its peer along
Result<bool> DeleteLink(Socket& socket, std::string_view name);  // false: there was none

}  // namespace keelson::netlink
