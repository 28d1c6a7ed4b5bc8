// Live tables of the kernel with their rules, as input for tracing a packet (trace.h). Works for tables of
// any program: rules are decoded as far as rule.h models their expressions.
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
  // Text of the whole rule, with unknown expressions in brackets as libnftnl prints them; empty: all is
  // understood. "r0 = th dport; r0 == 0x0050; [limit rate 5/second burst 5 type packets flags 0x0]; drop"
  std::string not_understood;
  uint64_t handle = 0;                // identifies the rule within its table
  std::vector<std::string> leads_to;  // chains that it jumps or goes to, even if not understood
  std::string note = {};              // as Rule::note(), of rules that have a fingerprint
  uint64_t packets = 0;               // by its counter; 0 without one
};

struct LiveTable {
  Ruleset contents;                                      // without rules
  std::map<std::string, std::vector<Program>> programs;  // by chain
};

// All tables of these families at one moment, in the calling thread's network namespace. Needs
// CAP_NET_ADMIN. kUnavailable when they change faster than they can be read.
Result<std::vector<LiveTable>> ReadLiveTables(const std::vector<Family>& families);
// The rules of one table, by chain. Empty: there is no such table. Cheaper than ReadLiveTable().
Result<std::map<std::string, std::vector<Program>>> ReadRules(const Table& table);
// Like ReadLiveTables(), for one table; nullopt: there is none.
Result<std::optional<LiveTable>> ReadLiveTable(const Table& table);

}  // namespace keelson::nft
