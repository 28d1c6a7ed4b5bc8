// nftables objects as text, for logs and golden tests: sorted and stable. Close to nft(8)'s language where
// that has an equivalent; register programs are written out:
//
//   r0 = ip daddr; r1 = meta l4proto; r2 = th dport; r0 = @endpoints[r0]; dnat r0 port r1
#pragma once

#include <string>

#include "lib/nft/transaction.h"

namespace keelson::nft {

std::string ToText(const Table& table);
std::string ToText(const Rule& rule);
std::string ToText(const std::vector<Expr>& exprs);
std::string ToText(const Set& set);  // its declaration, on one line
std::string ToText(const Verdict& verdict);
std::string ToText(const Set& set, const Element& element);
std::string ToText(const Ruleset& ruleset);
std::string ToText(const Op& op);  // one line per change, for error messages
std::string ToText(const Transaction& transaction);

}  // namespace keelson::nft
