#include "lib/cel/check/literals.h"

#include <string>

#include <fmt/format.h>
#include <re2/re2.h>

#include "lib/api/duration.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

bool IsRegex(std::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  return RE2(re2::StringPiece(pattern.data(), pattern.size()), options).ok();
}

bool IsBadLiteral(std::string_view function, std::string_view text) {
  if (function == "duration") return !api::ParseGoDuration(text);
  if (function == "timestamp") return !ParseTime(text);
  return function == "matches" && !IsRegex(text);
}

}  // namespace

void CheckLiterals(const Expr* root, const Checked& checked, std::vector<Issue>& issues) {
  ForEachExpr(root, checked.info.size(), [&](const Expr* expr) {
    if (expr->kind != ExprKind::kCall || expr->args.empty()) return;
    const Expr* arg = expr->args[0];
    if (arg->kind != ExprKind::kConstant || arg->constant.kind != ConstantKind::kString) return;
    if (IsBadLiteral(expr->name, arg->constant.text)) {
      issues.push_back({arg->position, fmt::format("invalid {} argument", expr->name)});
    }
  });
}

}  // namespace keelson::cel
