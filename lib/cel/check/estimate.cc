#include "lib/cel/check/estimate.h"

#include <algorithm>
#include <optional>

#include "lib/cel/check/call_estimate.h"

namespace keelson::cel {
namespace {

constexpr Range64 kNameCost{1, 1};

class Estimator {
 public:
  Estimator(const Ast& ast, const Checked& checked, const std::vector<const DeclType*>& variables)
      : checked_(checked),
        variables_(variables),
        costs_(ast.size()),
        nodes_(ast.size()),
        locals_(static_cast<size_t>(checked.slots)) {}

  // Macros share subtrees; each is estimated once.
  Range64 Cost(const Expr* expr) {
    std::optional<Range64>& cost = costs_[expr->id];
    if (!cost) {
      nodes_[expr->id].type = Info(expr).type;
      Range64 made = Make(expr);
      cost = made;
    }
    return *cost;
  }

 private:
  const ExprInfo& Info(const Expr* expr) const { return checked_.info[expr->id]; }

  // What is known of an estimated expression.
  EstimatedArg& Node(const Expr* expr) {
    EstimatedArg& node = nodes_[expr->id];
    if (!node.size) node.size = LiteralSize(expr);
    return node;
  }

  std::optional<Range64> LiteralSize(const Expr* expr) const {
    uint64_t size = 1;
    switch (expr->kind) {
      case ExprKind::kConstant:
        if (expr->constant.kind == ConstantKind::kString) size = CountCodePoints(expr->constant.text);
        if (expr->constant.kind == ConstantKind::kBytes) size = expr->constant.text.size();
        break;
      case ExprKind::kList:
        size = expr->args.size();
        break;
      case ExprKind::kMap:
        size = expr->args.size() / 2;
        break;
      default:
        return std::nullopt;
    }
    return Range64{size, size};
  }

  Range64 Make(const Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kIdent:
        return Name(expr);
      case ExprKind::kSelect:
        return Select(expr);
      case ExprKind::kCall:
        return Call(expr);
      case ExprKind::kList:
      case ExprKind::kMap:
      case ExprKind::kStruct:
        return Container(expr);
      case ExprKind::kComprehension:
        return Fold(expr);
      default:
        return {};
    }
  }

  Range64 Name(const Expr* expr) {
    const ExprInfo& info = Info(expr);
    if (info.ref == RefKind::kLocal) {
      const Local& local = locals_[static_cast<size_t>(info.index)];
      nodes_[expr->id].declared = local.declared;
      nodes_[expr->id].size = local.size;
    } else if (info.ref == RefKind::kVariable) {
      nodes_[expr->id].declared = variables_[static_cast<size_t>(info.index)];
    }
    return kNameCost;
  }

  Range64 Select(const Expr* expr) {
    if (Info(expr).ref != RefKind::kNone) return Name(expr);
    Range64 cost = Cost(expr->target);
    if (expr->test_only) return cost;
    Type target = Info(expr->target).type;
    bool charged = target->kind == TypeKind::kMap || target->kind == TypeKind::kObject ||
                   target->kind == TypeKind::kParam || IsOptional(target);
    nodes_[expr->id].declared = Field(Node(expr->target).declared, expr->name);
    return charged ? cost + kNameCost : cost;
  }

  static const DeclType* Field(const DeclType* declared, std::string_view name) {
    if (!declared) return nullptr;
    if (const DeclField* field = declared->FindField(name)) return field->type.get();
    // Values of unknown type that have a limit all have the same: attributes of devices.
    const DeclType* value = declared->element().get();
    return value && value->form() == DeclForm::kDyn && value->max_elements() > 0 ? value : nullptr;
  }

  Range64 Container(const Expr* expr) {
    Range64 cost;
    for (const Expr* arg : expr->args) cost = cost + Cost(arg);
    uint64_t base = expr->kind == ExprKind::kList  ? kListCost
                    : expr->kind == ExprKind::kMap ? kMapCost
                                                   : kObjectCost;
    return cost + Range64{base, base};
  }

  Range64 Call(const Expr* expr) {
    const ExprInfo& info = Info(expr);
    EstimatedCall call;
    Range64 cost;
    if (expr->target && !info.global) {
      cost = Cost(expr->target);
      call.args.push_back(&Node(expr->target));
      call.member = true;
    }
    for (const Expr* arg : expr->args) {
      call.arg_costs.push_back(Cost(arg));
      call.args.push_back(&Node(arg));
    }
    if (info.overloads.empty()) return {};
    call.literal_limit = expr->args.size() > 1 && expr->args[1]->kind == ExprKind::kConstant &&
                                 expr->args[1]->constant.kind == ConstantKind::kInt
                             ? std::optional<int64_t>(expr->args[1]->constant.i)
                             : std::nullopt;
    std::optional<Range64> total, size;
    for (const Overload* overload : info.overloads) {
      CallEstimate estimate = EstimateCall(*overload, call);
      total = total ? Union(*total, estimate.cost) : estimate.cost;
      if (estimate.size) size = size ? Union(*size, *estimate.size) : *estimate.size;
      if (overload->row->name == operators::kIndex || overload->row->name == operators::kOptIndex) {
        if (const DeclType* container = call.args[0]->declared) {
          nodes_[expr->id].declared = container->element().get();
        }
      }
    }
    if (info.function->name == operators::kOptSelect) {
      nodes_[expr->id].declared = Field(call.args[0]->declared, expr->args[1]->constant.text);
    }
    nodes_[expr->id].size = size;
    return cost + *total;
  }

  struct Local {
    const DeclType* declared = nullptr;
    std::optional<Range64> size;
  };

  static const DeclType* Element(const DeclType* declared) {
    return declared ? declared->element().get() : nullptr;
  }

  Range64 Fold(const Expr* expr) {
    const Comprehension& fold = *expr->fold;
    Range64 cost = Cost(fold.range) + Cost(fold.init);
    auto slot = static_cast<size_t>(Info(expr).index);
    bool accumulates = expr->name == kAccumulator;
    locals_[slot] = accumulates ? Local() : Local{Node(fold.init).declared, Node(fold.init).size};
    const DeclType* range = Node(fold.range).declared;
    bool map = Info(fold.range).type->kind == TypeKind::kMap, two = !fold.var2.empty();
    locals_[slot + 1] = {map || two ? nullptr : Element(range), std::nullopt};
    if (two) locals_[slot + 2] = {Element(range), std::nullopt};
    // As upstream: keys of declared maps have the size of their declared type, mostly a string without a maximum set.
    if (map && range) locals_[slot + 1].size = Range64{0, static_cast<uint64_t>(range->max_key_length())};
    Range64 round = Cost(fold.condition) + Cost(fold.step);
    cost = cost + Cost(fold.result);
    Range64 count = SizeOf(Node(fold.range));
    if (fold.init->kind == ExprKind::kConstant) {
      nodes_[expr->id].size = Range64{1, 1};
    } else if (accumulates && (fold.init->kind == ExprKind::kList || fold.init->kind == ExprKind::kMap)) {
      nodes_[expr->id].size = count;
    } else if (!accumulates) {
      nodes_[expr->id].size = Node(fold.result).size;
      nodes_[expr->id].declared = Node(fold.result).declared;
    }
    return cost + count * round;
  }

  const Checked& checked_;
  const std::vector<const DeclType*>& variables_;
  std::vector<std::optional<Range64>> costs_;
  std::vector<EstimatedArg> nodes_;
  std::vector<Local> locals_;
};

}  // namespace

Range64 EstimateCost(const Ast& ast, const Checked& checked, const std::vector<const DeclType*>& variables) {
  return Estimator(ast, checked, variables).Cost(ast.root);
}

}  // namespace keelson::cel
