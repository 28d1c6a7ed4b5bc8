// Inside lib/nft only: a packet through the chains of one table.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/trace.h"

namespace keelson::nft {

// From a base chain's first rule on; `before` is what has happened so far.
std::vector<TraceOutcome> WalkChain(const LiveTable& table, const std::string& chain, TraceOutcome before,
                                    const AddressTypeOf& address_type);

}  // namespace keelson::nft
