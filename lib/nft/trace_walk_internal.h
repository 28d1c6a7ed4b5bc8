// Internal to lib/nft: follows a packet through the chains of one table.
#pragma once

#include <string>
#include <vector>

#include "lib/nft/trace.h"

namespace keelson::nft {

// Starts at a base chain's first rule; `before` is the outcome so far.
std::vector<TraceOutcome> WalkChain(const LiveTable& table, const std::string& chain, TraceOutcome before,
                                    const AddressTypeOf& address_type);

}  // namespace keelson::nft
