// Notifications of changes to the kernel's network configuration, by this process or others.
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
  // kFilter: a filter or a queueing discipline has gone. kLost: messages were lost; read everything again.
  Kind kind = Kind::kLost;
  bool removed = false;
  int link_index = 0;     // 0: none
  std::string link_name;  // kLink
  int table = 0;          // kRoute
  // kAddress, kRoute: in fe80::/10, 169.254/16 or multicast; every new link has some.
  bool link_local = false;
  uint32_t author = 0;  // Socket::port() of whoever made the change; 0: the kernel itself
};

// Reports changes of links, addresses, routes and neighbours of both families, and removals of filters, in
// the namespace that it was opened in. One waiting thread at a time.
class Monitor {
 public:
  static Result<Monitor> Open();
  // Blocks until there is at least one event. kTimeout after `timeout`, kCancelled on `stop`.
  Result<std::vector<KernelEvent>> Wait(std::stop_token stop, std::chrono::milliseconds timeout);

 private:
  explicit Monitor(linux::NetlinkEvents events) : events_(std::move(events)) {}
  linux::NetlinkEvents events_;
};

}  // namespace keelson::netlink
