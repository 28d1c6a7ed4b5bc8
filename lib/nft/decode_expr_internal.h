// Internal to lib/nft: decodes one expression of the kernel into rule.h's model.
#pragma once

#include <cstdio>  // libnftnl/expr.h needs FILE

#include <libnftnl/expr.h>

#include "lib/nft/program.h"

namespace keelson::nft {

// Appends the expression to `program`, or records it there as not understood.
void DecodeExpr(const nftnl_expr* e, Program& program);

}  // namespace keelson::nft
