// Looks at calls of string.format() whose format and list of arguments are literals: clauses that do not exist, wrong
// types, wrong numbers of arguments (cel-go, ext/formatting.go).
#pragma once

#include <vector>

#include "lib/cel/check/checker.h"

namespace keelson::cel {

void CheckFormatCalls(const Expr* root, const Checked& checked, std::vector<Issue>& issues);

}  // namespace keelson::cel
