// Reports who changes nf_tables: netfilter's notifications (NFNLGRP_NFTABLES).
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

// A table with an addition or removal. One Wait() merges several changes by one author.
struct TableChange {
  Family family;
  std::string table;
  uint32_t author = 0;  // Kernel::port() of whoever made the change
  bool operator==(const TableChange&) const = default;
};

// Watches the network namespace that it was opened in. A monitor opened before a table is read misses
// nothing. The kernel spends time on every element while somebody listens. One waiting thread at a time.
class Monitor {
 public:
  static Result<Monitor> Open();

  struct Changes {
    std::vector<TableChange> tables;
    bool lost = false;  // the socket overflowed: read the tables again
  };
  // Blocks until there is at least one change. kTimeout after `timeout`, kCancelled on `stop`.
  Result<Changes> Wait(std::stop_token stop, std::chrono::milliseconds timeout);
  // Switches notifications on or off; they start switched on. From any thread.
  Result<> Listen(bool on);

 private:
  explicit Monitor(linux::NetlinkEvents events) : events_(std::move(events)) {}
  linux::NetlinkEvents events_;
};

}  // namespace keelson::nft
