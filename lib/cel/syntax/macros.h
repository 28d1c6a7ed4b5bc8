// Macros: calls that the parser replaces.
#pragma once

#include <string_view>
#include <vector>

#include "lib/cel/syntax/ast.h"
#include "lib/cel/syntax/parser.h"

namespace keelson::cel {

// The expansion of a call at `position`, or null when no macro has this name, form and number of arguments. A macro with
// unfit arguments is reported and gives an error node. `target` is null for global calls.
Expr* ExpandMacro(Ast& ast, const SyntaxOptions& options, uint32_t position, std::string_view name,
                  Expr* target, const std::vector<Expr*>& args, std::vector<Issue>& issues);

}  // namespace keelson::cel
