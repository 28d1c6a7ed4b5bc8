// Internal to lib/nft: encodes one expression for libnftnl, and converts verdict codes.
#pragma once

#include <cstdio>  // libnftnl/expr.h needs FILE

#include <libnftnl/expr.h>

#include "lib/nft/rule.h"

namespace keelson::nft {

nftnl_expr* EncodeExpr(const Expr& expr, Family table_family);  // owned by the caller
int VerdictCode(Verdict::Kind kind);
Verdict::Kind VerdictKind(int code);

}  // namespace keelson::nft
