// Expressions to syntax trees. Recursive descent with upstream's limits, so that no input exhausts the stack; problems
// are worded and placed as cel-go's ANTLR parser does.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "lib/cel/syntax/ast.h"
#include "lib/cel/syntax/source.h"

namespace keelson::cel {

inline constexpr size_t kMostCodePoints = 100'000;  // of one expression
inline constexpr int kMostRecursion = 250;          // of each rule of the grammar

// What the environment's version allows.
struct SyntaxOptions {
  bool optional_syntax = true;       // a.?b, a[?k], [?x], {?k: v}, optMap, optFlatMap
  bool two_variables = true;         // m.all(k, v, p), transformList, transformMap, transformMapEntry
  bool sort_by = true;               // l.sortBy(x, key)
  bool bind = false;                 // cel.bind(x, value, expression)
  bool escaped_identifiers = false;  // a.`b-c`
};

// The tree, whose root is null when `issues` is not empty on return.
std::unique_ptr<Ast> Parse(std::string_view expression, const SyntaxOptions& options,
                           std::vector<Issue>& issues);

}  // namespace keelson::cel
