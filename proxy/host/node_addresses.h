// Which of this machine's addresses NodePorts answer on. Those that mode ipvs has given it are not the
// machine's own.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::proxy {

// `wanted` holds CIDRs, or is empty or "primary": then the Node's own addresses (`node_ips`), or while the
// Node has none, every address of the machine but loopback and link-local ones.
Result<std::vector<IpAddress>> NodePortAddresses(const std::vector<std::string>& wanted,
                                                 const std::vector<IpAddress>& node_ips);

// All of them but loopback and link-local ones, sorted.
Result<std::vector<IpAddress>> OwnAddresses();

// The device of mode ipvs; 0: there is none.
int IpvsDeviceIndex();

}  // namespace keelson::proxy
