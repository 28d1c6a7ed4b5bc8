// A ruleset of the shape that upstream's mode nftables has: a chain for every Service, one for every
// endpoint, and a verdict map from addresses to chains. To measure against; nothing else uses it.
#pragma once

#include "lib/nft/kernel.h"
#include "proxy/model/service_port.h"

namespace keelson::netns {

nft::Transaction UpstreamShape(const std::vector<proxy::ResolvedPort>& ports);

}  // namespace keelson::netns
