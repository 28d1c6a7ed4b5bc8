// Checked expressions to executable ones.
#pragma once

#include "lib/cel/check/checker.h"
#include "lib/cel/eval/node.h"

namespace keelson::cel {

// The nodes belong to `arena`, and with it everything that they need, but for overloads and declarations. Calls of
// conversions with literals are done now.
const Node* Plan(const Ast& ast, const Checked& checked, Arena& arena);

}  // namespace keelson::cel
