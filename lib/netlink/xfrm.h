// IPsec in the kernel: security associations ("states": keys) and policies (what they are used for).
// ESP in tunnel mode with AES-GCM only. `socket` comes from Socket::OpenXfrm().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/ip.h"
#include "lib/linux/netlink_events.h"
#include "lib/netlink/socket.h"

namespace keelson::netlink {

struct XfrmState {
  IpAddress source, destination;  // of outer packets
  uint32_t spi = 0;               // host order, 256 and above; unique per destination
  uint32_t reqid = 0;             // policies select states by it
  std::string key;                // AES-256 key and 4 bytes of salt; empty in listings
};

struct XfrmPolicy {
  enum class Direction : uint8_t { kIn, kOut, kForward };
  struct Tunnel {
    IpAddress source, destination;
    uint32_t spi = 0;  // 0: any state of the reqid
    uint32_t reqid = 0;
    auto operator<=>(const Tunnel&) const = default;
  };
  Direction direction = Direction::kOut;
  IpPrefix source, destination;  // of inner packets
  uint32_t priority = 0;         // the matching policy with the lowest priority applies
  bool block = false;
  std::optional<Tunnel> tunnel = {};  // none: packets pass unchanged
  bool operator==(const XfrmPolicy&) const = default;
};

// Adds a security association. Its lifetime is unlimited, inner packets may be of either family, and replay
// protection is off: a sender that restarts counts from one again. kAlreadyExists when the SPI is taken;
// kUnimplemented when the kernel has no ESP or no AES-GCM.
Result<> AddState(Socket& socket, const XfrmState& state);
Result<bool> DeleteState(Socket& socket, const XfrmState& state);  // false: there was none
Result<std::vector<XfrmState>> ListStates(Socket& socket);         // of ESP

// Adds a policy, or replaces the one with the same direction and addresses.
Result<> ReplacePolicy(Socket& socket, const XfrmPolicy& policy);
Result<bool> DeletePolicy(Socket& socket, const XfrmPolicy& policy);  // false: there was none
Result<std::vector<XfrmPolicy>> ListPolicies(Socket& socket);

// Reports changes of policies, whoever makes them, in the namespace that it was opened in. One waiting
// thread at a time.
class PolicyMonitor {
 public:
  // EPROTONOSUPPORT: the kernel has no IPsec.
  static Result<PolicyMonitor> Open();
  // Blocks until there is at least one change; returns the number of changes, at least one. Lost messages
  // count as one. kTimeout after `timeout`, kCancelled on `stop`.
  Result<size_t> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  explicit PolicyMonitor(linux::NetlinkEvents events) : events_(std::move(events)) {}
  linux::NetlinkEvents events_;
};

}  // namespace keelson::netlink
