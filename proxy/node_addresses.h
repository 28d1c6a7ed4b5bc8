// Which of this machine's addresses NodePorts answer on.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::proxy {

// `wanted` holds CIDRs, or is empty or "primary": then the Node's own addresses (`node_ips`), or while the
// Node has none, every address of the machine but loopback and link-local ones.
Result<std::vector<IpAddress>> NodePortAddresses(const std::vector<std::string>& wanted,
                                                 const std::vector<IpAddress>& node_ips);

}  // namespace keelson::proxy
