#include "lib/cel/eval/planner.h"

#include <algorithm>

#include "lib/cel/eval/fold.h"
#include "lib/cel/eval/nodes.h"
#include "lib/cel/library/regex.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

bool IsConversion(std::string_view function) {
  constexpr std::string_view kNames[] = {"bool", "bytes",  "double",    "duration", "dyn",
                                         "int",  "string", "timestamp", "type",     "uint"};
  return std::find(std::begin(kNames), std::end(kNames), function) != std::end(kNames);
}

class Planner {
 public:
  Planner(const Ast& ast, const Checked& checked, Arena& arena)
      : checked_(checked), arena_(arena), planned_(ast.size()) {}

  // Macros share subtrees; each is planned once.
  const Node* Visit(const Expr* expr) {
    const Node*& node = planned_[expr->id];
    if (!node) node = Make(expr);
    return node;
  }

 private:
  const ExprInfo& Info(const Expr* expr) const { return checked_.info[expr->id]; }

  const Node* Make(const Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kConstant:
        return arena_.New<ConstantNode>(Literal(expr->constant));
      case ExprKind::kIdent:
        return Name(expr);
      case ExprKind::kSelect:
        if (Info(expr).ref != RefKind::kNone) return Name(expr);
        if (expr->test_only) return arena_.New<HasNode>(Visit(expr->target), arena_.Copy(expr->name));
        return arena_.New<SelectNode>(Visit(expr->target), arena_.Copy(expr->name));
      case ExprKind::kCall:
        return Call(expr);
      case ExprKind::kList:
        return List(expr);
      case ExprKind::kMap:
        return Map(expr);
      case ExprKind::kStruct:
        return Struct(expr);
      case ExprKind::kComprehension:
        return Fold(expr);
      case ExprKind::kError:
        break;
    }
    return arena_.New<ConstantNode>(Value::StaticError("unsupported expression"));
  }

  Value Literal(const Constant& constant) {
    switch (constant.kind) {
      case ConstantKind::kNull:
        return Value();
      case ConstantKind::kBool:
        return Value::Bool(constant.b);
      case ConstantKind::kInt:
        return Value::Int(constant.i);
      case ConstantKind::kUint:
        return Value::Uint(constant.u);
      case ConstantKind::kDouble:
        return Value::Double(constant.d);
      case ConstantKind::kString:
        return Value::String(arena_.Copy(constant.text));
      case ConstantKind::kBytes:
        break;
    }
    return Value::Bytes(arena_.Copy(constant.text));
  }

  const Node* Name(const Expr* expr) {
    const ExprInfo& info = Info(expr);
    switch (info.ref) {
      case RefKind::kLocal:
        return arena_.New<LocalNode>(static_cast<size_t>(info.index));
      case RefKind::kTypeValue:
        return arena_.New<ConstantNode>(Value::OfType(info.value_type));
      default:
        return arena_.New<VariableNode>(static_cast<size_t>(info.index));
    }
  }

  const Node* Call(const Expr* expr) {
    const ExprInfo& info = Info(expr);
    std::string_view name = info.function->name;
    auto arg = [&](size_t i) { return Visit(expr->args[i]); };
    if (name == operators::kAnd || name == operators::kOr) {
      return arena_.New<LogicalNode>(arg(0), arg(1), name == operators::kOr);
    }
    if (name == operators::kConditional) return arena_.New<ConditionalNode>(arg(0), arg(1), arg(2));
    if (name == operators::kNotStrictlyFalse) return arena_.New<NotStrictlyFalseNode>(arg(0));
    if (name == operators::kIndex) return arena_.New<IndexNode>(arg(0), arg(1), false);
    if (name == operators::kOptIndex || name == operators::kOptSelect) {
      return arena_.New<IndexNode>(arg(0), arg(1), true);
    }
    bool member = expr->target && !info.global;
    if (member && info.overloads[0]->row->overload.starts_with("optional_or")) {
      return arena_.New<OptionalOrNode>(Visit(expr->target), arg(0), name == "orValue");
    }
    if (name == "cel.@mapInsert") {
      size_t slot = static_cast<size_t>(Info(expr->args[0]).index);
      return arena_.New<MapInsertNode>(slot, expr->args.size() == 3 ? arg(1) : nullptr,
                                       arg(expr->args.size() - 1));
    }
    std::vector<const Node*> args;
    if (member) args.push_back(Visit(expr->target));
    for (size_t i = 0; i < expr->args.size(); ++i) args.push_back(arg(i));
    return Optimized(*info.function, info.overloads, std::move(args));
  }

  const Node* Optimized(const Function& function, const std::vector<const Overload*>& overloads,
                        std::vector<const Node*> args) {
    if (function.name == "matches" && args.size() == 2 && args[1]->constant() &&
        args[1]->constant()->Is(ValueKind::kString)) {
      if (auto regex = CompileRegex(args[1]->constant()->text())) {
        return arena_.New<MatchesNode>(args[0], *args[1]->constant(), *regex);
      }
    }
    bool literal = IsConversion(function.name) && args.size() == 1 && args[0]->constant();
    const Node* node = arena_.New<CallNode>(function, overloads, std::move(args));
    if (!literal) return node;
    Frame frame{arena_, {}, {}, UINT64_MAX, SteadyTime::max()};
    Value value = node->Eval(frame);
    return value.IsError() ? node : arena_.New<ConstantNode>(value);
  }

  Elements Children(const Expr* expr) {
    Elements out;
    for (const Expr* child : expr->args) out.nodes.push_back(Visit(child));
    out.optional.assign(expr->optional.begin(), expr->optional.end());
    return out;
  }

  static bool AllLiterals(const Elements& elements) {
    return elements.optional.empty() && std::all_of(elements.nodes.begin(), elements.nodes.end(),
                                                    [](const Node* n) { return n->constant(); });
  }

  // Lists and maps of literals are literals: they cost nothing when they run.
  const Node* Folded(const Node* node, const Elements& elements) {
    if (!AllLiterals(elements)) return node;
    Frame frame{arena_, {}, {}, UINT64_MAX, SteadyTime::max()};
    Value value = node->Eval(frame);
    return value.IsError() ? node : arena_.New<ConstantNode>(value);
  }

  const Node* List(const Expr* expr) {
    Elements elements = Children(expr);
    return Folded(arena_.New<ListNode>(elements), elements);
  }

  const Node* Map(const Expr* expr) {
    Elements entries = Children(expr);
    return Folded(arena_.New<MapNode>(entries), entries);
  }

  const Node* Struct(const Expr* expr) {
    std::vector<std::string_view> names;
    for (std::string_view name : expr->names) names.push_back(arena_.Copy(name));
    return arena_.New<StructNode>(Info(expr).value_type, std::move(names), Children(expr));
  }

  // The accumulator that the name stands for in its fold.
  static bool IsEmptyContainer(const Expr* expr) {
    return (expr->kind == ExprKind::kList || expr->kind == ExprKind::kMap) && expr->args.empty();
  }

  // accumulator + [x], as macros write it.
  const Node* Append(const Expr* expr, size_t slot) {
    if (expr->kind != ExprKind::kCall || expr->name != operators::kAdd) return nullptr;
    const Expr *accumulator = expr->args[0], *list = expr->args[1];
    if (accumulator->kind != ExprKind::kIdent || accumulator->name != kAccumulator ||
        list->kind != ExprKind::kList || list->args.size() != 1) {
      return nullptr;
    }
    const Node* element = Visit(list->args[0]);
    return arena_.New<AppendNode>(slot, element, element->constant() != nullptr);
  }

  const Node* Step(const Expr* expr, size_t slot) {
    if (const Node* append = Append(expr, slot)) return append;
    if (expr->kind == ExprKind::kCall && expr->name == operators::kConditional) {
      if (const Node* append = Append(expr->args[1], slot)) {
        return arena_.New<ConditionalNode>(Visit(expr->args[0]), append, Visit(expr->args[2]));
      }
    }
    return Visit(expr);
  }

  const Node* Fold(const Expr* expr) {
    const Comprehension& fold = *expr->fold;
    FoldPlan plan;
    plan.slot = static_cast<size_t>(Info(expr).index);
    plan.two_variables = !fold.var2.empty();
    plan.range = Visit(fold.range);
    bool fills = expr->name == kAccumulator && IsEmptyContainer(fold.init);
    plan.init = fills ? arena_.New<FreshNode>(fold.init->kind == ExprKind::kMap) : Visit(fold.init);
    plan.condition = Visit(fold.condition);
    plan.step = fills ? Step(fold.step, plan.slot) : Visit(fold.step);
    plan.result = Visit(fold.result);
    return arena_.New<FoldNode>(plan);
  }

  const Checked& checked_;
  Arena& arena_;
  std::vector<const Node*> planned_;
};

}  // namespace

const Node* Plan(const Ast& ast, const Checked& checked, Arena& arena) {
  return Planner(ast, checked, arena).Visit(ast.root);
}

}  // namespace keelson::cel
