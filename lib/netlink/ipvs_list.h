// Reads all virtual servers with their destinations at once from /proc/net/ip_vs, to check them against the
// wanted state. Netlink sends no notifications about IPVS, and needs one request per server to list
// destinations.
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
  bool sticky = false;  // has an affinity; the file gives its time in kernel ticks
  struct Listed {
    Destination destination;
    bool translates = true;
  };
  std::vector<Listed> destinations;
};

// Servers by firewall mark are left out. kInvalid: a line that cannot be parsed.
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
