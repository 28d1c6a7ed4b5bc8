// A ruleset with the structure of upstream's nftables mode: a chain per Service and per endpoint, and a
// verdict map from addresses to chains. For benchmarks only.
#pragma once

#include "lib/nft/kernel.h"
#include "proxy/model/service_port.h"

namespace keelson::netns {

nft::Transaction UpstreamShape(const std::vector<proxy::ResolvedPort>& ports);

}  // namespace keelson::netns
