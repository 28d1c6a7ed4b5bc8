// Tables as the kernel has them at this moment, rules included: what a packet's way is traced by (trace.h).
// Whoever made them: rules of others are understood as far as rule.h has words for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/nft/kernel.h"
#include "lib/nft/model.h"
#include "lib/nft/rule.h"

namespace keelson::nft {

// One rule.
struct Program {
  std::vector<Expr> exprs;     // up to the first that is not understood
  std::string not_understood;  // the kernel's name of that one ("limit", "match"); empty: none
};

struct LiveTable {
  Ruleset contents;                                      // its rules are left out
  std::map<std::string, std::vector<Program>> programs;  // by chain
};

// All tables of these families, as of one moment; kUnavailable when they change faster than they can be read.
// Of the calling thread's network namespace. Needs CAP_NET_ADMIN.
Result<std::vector<LiveTable>> ReadLiveTables(const std::vector<Family>& families);

}  // namespace keelson::nft
