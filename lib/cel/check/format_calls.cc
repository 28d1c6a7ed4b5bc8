#include "lib/cel/check/format_calls.h"

#include <optional>

#include <fmt/format.h>

#include "lib/cel/check/literals.h"
#include "lib/cel/functions/format_clause.h"

namespace keelson::cel {
namespace {

bool Fits(char verb, TypeKind kind) {
  switch (kind) {
    case TypeKind::kInt:
    case TypeKind::kUint:
      return verb != 'f' && verb != 'e';
    case TypeKind::kDouble:
      return verb == 's' || verb == 'f' || verb == 'e';
    case TypeKind::kBool:
      return verb == 's' || verb == 'b';
    case TypeKind::kString:  // "NaN" and "Infinity" are numbers
      return verb != 'd' && verb != 'b' && verb != 'o';
    case TypeKind::kBytes:
      return verb == 's' || verb == 'x' || verb == 'X';
    case TypeKind::kNull:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
    case TypeKind::kType:
    case TypeKind::kList:
    case TypeKind::kMap:
      return verb == 's';
    default:
      return false;
  }
}

class FormatChecker {
 public:
  FormatChecker(const Checked& checked, std::vector<Issue>& issues) : checked_(checked), issues_(issues) {}

  void Check(const Expr* call) {
    const auto& args = call->args[0]->args;
    size_t next = 0;
    for (std::string_view rest = call->target->constant.text; !rest.empty();) {
      const bool clause = rest[0] == '%';
      rest.remove_prefix(1);
      if (!clause) continue;
      if (rest.starts_with('%')) {
        rest.remove_prefix(1);
        continue;
      }
      if (!rest.empty() && next >= args.size()) {
        return Report(call, fmt::format("index {} out of range", next));
      }
      const auto taken = TakeFormatClause(rest);
      if (!taken) return Report(call, taken.error().message());
      if (const Expr* wrong = Misfit(taken->verb, args[next++])) {
        return Report(wrong, fmt::format("error during formatting: {}, was given {}",
                                         TakenByClause(taken->verb), RuntimeName(TypeOf(wrong))));
      }
    }
    if (args.size() > next) {
      Report(call, fmt::format("too many arguments supplied to string.format (expected {}, got {})", next,
                               args.size()));
    }
  }

 private:
  Type TypeOf(const Expr* expr) const { return checked_.info[expr->id].type; }
  void Report(const Expr* expr, std::string text) { issues_.push_back({expr->position, std::move(text)}); }

  // The part that the clause cannot print; null: none. %s prints lists and maps with all that is in them.
  const Expr* Misfit(char verb, const Expr* arg) const {
    const Type type = TypeOf(arg);
    if (IsDyn(type)) return nullptr;
    if (!Fits(verb, type->kind)) return arg;
    if (arg->kind != ExprKind::kList && arg->kind != ExprKind::kMap) return nullptr;
    for (const Expr* part : arg->args) {
      if (const Expr* wrong = Misfit(verb, part)) return wrong;
    }
    return nullptr;
  }

  const Checked& checked_;
  std::vector<Issue>& issues_;
};

bool IsConstantFormat(const Expr* expr) {
  return expr->kind == ExprKind::kCall && expr->name == "format" && expr->target &&
         expr->target->kind == ExprKind::kConstant && expr->target->constant.kind == ConstantKind::kString &&
         expr->args.size() == 1 && expr->args[0]->kind == ExprKind::kList;
}

}  // namespace

void CheckFormatCalls(const Expr* root, const Checked& checked, std::vector<Issue>& issues) {
  FormatChecker checker(checked, issues);
  ForEachExpr(root, checked.info.size(), [&](const Expr* expr) {
    if (IsConstantFormat(expr)) checker.Check(expr);
  });
}

}  // namespace keelson::cel
