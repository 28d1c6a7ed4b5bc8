// Looks at literals that a call would refuse when it runs: duration('x'), timestamp('x'), s.matches('(').
#pragma once

#include <vector>

#include "lib/cel/check/checker.h"

namespace keelson::cel {

void CheckLiterals(const Expr* root, const Checked& checked, std::vector<Issue>& issues);

// Calls `visit` for each expression below `root`, once.
template <typename F>
void ForEachExpr(const Expr* root, size_t count, F visit) {
  std::vector<bool> seen(count);
  std::vector<const Expr*> waiting{root};
  while (!waiting.empty()) {
    const Expr* expr = waiting.back();
    waiting.pop_back();
    if (!expr || seen[expr->id]) continue;
    seen[expr->id] = true;
    visit(expr);
    waiting.push_back(expr->target);
    waiting.insert(waiting.end(), expr->args.begin(), expr->args.end());
    if (const Comprehension* fold = expr->fold) {
      waiting.insert(waiting.end(), {fold->range, fold->init, fold->condition, fold->step, fold->result});
    }
  }
}

}  // namespace keelson::cel
