// ipMasq: what leaves a container subnet for elsewhere takes the host's address.
#pragma once

#include "cni/lib/error.h"
#include "lib/base/ip.h"

namespace keelson::cni {

// One nftables chain a subnet in `table inet keelson-cni`; made when it is not there. It stays when the
// last container goes: it holds nothing of any container.
Outcome<> EnsureMasquerade(const IpPrefix& subnet);

}  // namespace keelson::cni
