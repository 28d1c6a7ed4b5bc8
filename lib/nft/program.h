// Tables as the kernel has them at this moment, rules included: what a packet's way is traced by (trace.h).
// Whoever made them: rules of others are understood as far as rule.h has words for them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/nft/kernel.h"
#include "lib/nft/model.h"
#include "lib/nft/rule.h"

namespace keelson::nft {

// One rule.
struct Program {
  std::vector<Expr> exprs;  // up to the first that is not understood
  // The whole rule as text when there is such a one, in brackets as libnftnl prints it; empty: all is
  // understood. "r0 = th dport; r0 == 0x0050; [limit rate 5/second burst 5 type packets flags 0x0]; drop"
  std::string not_understood;
  uint64_t handle = 0;                // by which the kernel knows it within its table
  std::vector<std::string> leads_to;  // chains that it jumps or goes to, whatever else it says
};

struct LiveTable {
  Ruleset contents;                                      // its rules are left out
  std::map<std::string, std::vector<Program>> programs;  // by chain
};

// All tables of these families, as of one moment; kUnavailable when they change faster than they can be read.
// Of the calling thread's network namespace. Needs CAP_NET_ADMIN.
Result<std::vector<LiveTable>> ReadLiveTables(const std::vector<Family>& families);
// One of them; nullopt: there is none.
Result<std::optional<LiveTable>> ReadLiveTable(const Table& table);

}  // namespace keelson::nft
