// Computes the changes from the kernel's state to the wanted state.
#pragma once

#include <optional>

#include "lib/nft/transaction.h"

namespace keelson::nft {

// A transaction that touches only what differs. `found` nullopt: there is no table yet. Chains whose rules
// differ (by fingerprint) are flushed and refilled; sets of another shape are replaced. Elements of dynamic
// sets belong to the rules and stay.
Transaction Diff(const std::optional<Ruleset>& found, const Ruleset& wanted);

}  // namespace keelson::nft
