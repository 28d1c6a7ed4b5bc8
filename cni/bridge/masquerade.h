// ipMasq: packets that leave a container subnet get the host's address.
#pragma once

#include "cni/lib/error.h"
#include "lib/base/ip.h"

namespace keelson::cni {

// Makes the subnet's nftables chain in `table inet keelson-cni` if it is missing. It stays when the last
// container goes, since it holds nothing of any container.
Outcome<> EnsureMasquerade(const IpPrefix& subnet);

}  // namespace keelson::cni
