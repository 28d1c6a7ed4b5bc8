// Splits a transaction so that no packet falls between its two states.
//
// A packet that is under way while the kernel commits sees the rules of before, but sets as they are now: an element
// that is new may lead it to a chain that is new as well, whose rules it does not see. So chains come first, with
// all that they need, while nothing leads to them.
#pragma once

#include "lib/nft/transaction.h"

namespace keelson::cni::policy {

struct Steps {
  nft::Transaction unseen;    // chains and sets that are new; may be empty
  nft::Transaction decisive;  // the rest
};

// One step, `decisive`, is enough for a table that is new, and has to be for sets that take another's name.
Steps InSteps(nft::Transaction transaction);

}  // namespace keelson::cni::policy
