// Who changes nf_tables, as it happens: netfilter's notifications (NFNLGRP_NFTABLES).
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/linux/netlink_events.h"
#include "lib/nft/model.h"

namespace keelson::nft {

// A table that something was added to, or taken from. Several changes by one author are told once a Wait.
struct TableChange {
  Family family;
  std::string table;
  uint32_t author = 0;  // Kernel::port() of who did it
  bool operator==(const TableChange&) const = default;
};

// Of the network namespace it was opened in; opened before a table is read, it misses nothing. The kernel
// spends time on every element while somebody listens. One waiting thread at a time.
class Monitor {
 public:
  static Result<Monitor> Open();

  struct Changes {
    std::vector<TableChange> tables;
    bool lost = false;  // there was more than the socket holds: look for yourself
  };
  // Blocks for at least one change; kTimeout after `timeout`, kCancelled by `stop`.
  Result<Changes> Wait(std::stop_token stop, std::chrono::milliseconds timeout);
  // Whether the kernel is to tell of anything; at first it does. From any thread.
  Result<> Listen(bool on);

 private:
  explicit Monitor(linux::NetlinkEvents events) : events_(std::move(events)) {}
  linux::NetlinkEvents events_;
};

}  // namespace keelson::nft
