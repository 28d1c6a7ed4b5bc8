// All virtual servers and their destinations in one reading, /proc/net/ip_vs: to see whether they are as they
// should be. Netlink tells nobody of changes by others, and takes a request for each server's destinations.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/linux/proc_net.h"
#include "lib/netlink/ipvs.h"

namespace keelson::netlink {

struct ListedServer {
  ServerAddress address;
  std::string scheduler;
  bool sticky = false;  // has an affinity; its time is there in ticks of the kernel's own
  struct Listed {
    Destination destination;
    bool translates = true;
  };
  std::vector<Listed> destinations;
};

// Those of marks in place of addresses are left out. kInvalid: what is not understood.
Result<std::vector<ListedServer>> ParseIpvsList(std::string_view text);

class IpvsList {
 public:
  static Result<IpvsList> Open();  // in the calling thread's namespace
  Result<std::vector<ListedServer>> Read() const;

 private:
  explicit IpvsList(linux::ProcNetFile file) : file_(std::move(file)) {}
  linux::ProcNetFile file_;
};

}  // namespace keelson::netlink
