// This machine's addresses, as far as NodePorts answer on them. Addresses on the device of mode ipvs do not
// count.
#pragma once

#include <string>
#include <vector>

#include "lib/base/ip.h"

namespace keelson::proxy {

// The addresses for --nodeport-addresses. `wanted`: CIDRs; or empty or "primary" for the Node's addresses
// (`node_ips`), or while the Node has none, every address of the machine but loopback and link-local ones.
Result<std::vector<IpAddress>> NodePortAddresses(const std::vector<std::string>& wanted,
                                                 const std::vector<IpAddress>& node_ips);

// All addresses of the machine but loopback and link-local ones, sorted.
Result<std::vector<IpAddress>> OwnAddresses();

// Index of the device of mode ipvs; 0: there is none.
int IpvsDeviceIndex();

}  // namespace keelson::proxy
