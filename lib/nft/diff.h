// From what is in the kernel to what is wanted, touching only what differs.
#pragma once

#include <optional>

#include "lib/nft/transaction.h"

namespace keelson::nft {

// Chains whose rules differ (by fingerprint) are flushed and filled again; sets of another shape are made
// anew. Elements of dynamic sets belong to the rules and are left alone.
Transaction Diff(const std::optional<Ruleset>& found, const Ruleset& wanted);

}  // namespace keelson::nft
