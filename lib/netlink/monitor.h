// What others (and we) change in the kernel's network configuration, as it happens.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/linux/netlink_events.h"

namespace keelson::netlink {

struct KernelEvent {
  enum class Kind { kLink, kAddress, kRoute, kNeighbor, kFilter, kLost };
  // kFilter: a filter or a queueing discipline has gone. kLost: more than was kept; look at all.
  Kind kind = Kind::kLost;
  bool removed = false;
  int link_index = 0;     // 0: none
  std::string link_name;  // kLink
  int table = 0;          // kRoute
  bool link_local =
      false;            // kAddress, kRoute: of fe80::/10, 169.254/16 or multicast; every new link has such
  uint32_t author = 0;  // Socket::port() of who did it; 0: the kernel itself
};

// Links, addresses, routes and neighbours of both families, filters that go, of the namespace it was opened
// in. One waiting thread at a time.
class Monitor {
 public:
  static Result<Monitor> Open();
  // Blocks for at least one event; kTimeout after `timeout`, kCancelled by `stop`.
  Result<std::vector<KernelEvent>> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  explicit Monitor(linux::NetlinkEvents events) : events_(std::move(events)) {}
  linux::NetlinkEvents events_;
};

}  // namespace keelson::netlink
