// Inside lib/nft only: one expression as the kernel gave it, into rule.h's words.
#pragma once

#include <cstdio>  // libnftnl/expr.h needs FILE

#include <libnftnl/expr.h>

#include "lib/nft/program.h"

namespace keelson::nft {

// Appends it to `program`, or marks that as not understood.
void DecodeExpr(const nftnl_expr* e, Program& program);

}  // namespace keelson::nft
