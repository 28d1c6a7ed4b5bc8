#include "lib/cel/syntax/macros.h"

#include <fmt/format.h>

namespace keelson::cel {
namespace {

using Args = std::vector<Expr*>;

// No expression can name them.
constexpr std::string_view kUnused = "#unused", kSortInput = "@__sortBy_input__";
constexpr std::string_view kMapInsert = "cel.@mapInsert", kSortByKeys = "@sortByAssociatedKeys";

class Expander {
 public:
  Expander(Ast& ast, uint32_t position, std::vector<Issue>& issues)
      : ast_(ast), position_(position), issues_(issues) {}

  Expr* Has(const Args& args) {
    Expr* field = args[0];
    if (field->kind != ExprKind::kSelect || field->test_only) {
      return Report(field->position, "invalid argument to has() macro");
    }
    Expr* out = New(ExprKind::kSelect);
    out->target = field->target;
    out->name = field->name;
    out->test_only = true;
    return out;
  }

  enum class Quantifier { kAll, kExists, kExistsOne };

  Expr* Quantify(Quantifier quantifier, Expr* range, const Args& args) {
    std::string_view var, var2;
    if (Expr* problem = Variables(args, args.size() == 3, "argument must be a simple name", var, var2)) {
      return problem;
    }
    Expr* predicate = args.back();
    switch (quantifier) {
      case Quantifier::kAll:
        return Fold(range, var, var2, kAccumulator, Bool(true), Call(operators::kNotStrictlyFalse, {Accu()}),
                    Call(operators::kAnd, {Accu(), predicate}), Accu());
      case Quantifier::kExists:
        return Fold(range, var, var2, kAccumulator, Bool(false),
                    Call(operators::kNotStrictlyFalse, {Call(operators::kNot, {Accu()})}),
                    Call(operators::kOr, {Accu(), predicate}), Accu());
      case Quantifier::kExistsOne:
        return Fold(
            range, var, var2, kAccumulator, Int(0), Bool(true),
            Call(operators::kConditional, {predicate, Call(operators::kAdd, {Accu(), Int(1)}), Accu()}),
            Call(operators::kEquals, {Accu(), Int(1)}));
    }
    return nullptr;
  }

  // map(x, f), map(x, p, f), transformList(k, v, [p,] f).
  Expr* Map(Expr* range, const Args& args, bool two_variables) {
    std::string_view var, var2;
    const char* problem_text =
        two_variables ? "argument must be a simple name" : "argument is not an identifier";
    if (Expr* problem = Variables(args, two_variables, problem_text, var, var2)) return problem;
    Expr* step = Call(operators::kAdd, {Accu(), List({args.back()})});
    return Fold(range, var, var2, kAccumulator, List({}), Bool(true), Filtered(args, two_variables, step),
                Accu());
  }

  Expr* Filter(Expr* range, const Args& args) {
    std::string_view var, var2;
    if (Expr* problem = Variables(args, false, "argument is not an identifier", var, var2)) return problem;
    Expr* step =
        Call(operators::kConditional, {args[1], Call(operators::kAdd, {Accu(), List({Ident(var)})}), Accu()});
    return Fold(range, var, {}, kAccumulator, List({}), Bool(true), step, Accu());
  }

  // transformMap(k, v, [p,] f), transformMapEntry(k, v, [p,] {k: v}).
  Expr* TransformMap(Expr* range, const Args& args, bool entry) {
    std::string_view var, var2;
    if (Expr* problem = Variables(args, true, "argument must be a simple name", var, var2)) return problem;
    Expr* step =
        entry ? Call(kMapInsert, {Accu(), args.back()}) : Call(kMapInsert, {Accu(), Ident(var), args.back()});
    return Fold(range, var, var2, kAccumulator, New(ExprKind::kMap), Bool(true), Filtered(args, true, step),
                Accu());
  }

  Expr* OptMap(Expr* target, const Args& args, bool flat) {
    if (args[0]->kind != ExprKind::kIdent) {
      return Report(args[0]->position, fmt::format("{}() variable name must be a simple identifier",
                                                   flat ? "optFlatMap" : "optMap"));
    }
    Expr* value = Bind(args[0]->name, Call("value", {}, target), args[1]);
    if (!flat) value = Call("optional.of", {value});
    return Call(operators::kConditional, {Call("hasValue", {}, target), value, Call("optional.none", {})});
  }

  Expr* CelBind(const Args& args) {
    if (args[0]->kind != ExprKind::kIdent) {
      return Report(args[0]->position, "cel.bind() variable names must be simple identifiers");
    }
    return Bind(args[0]->name, args[1], args[2]);
  }

  Expr* SortBy(Expr* target, const Args& args) {
    switch (target->kind) {
      case ExprKind::kList:
      case ExprKind::kSelect:
      case ExprKind::kIdent:
      case ExprKind::kComprehension:
      case ExprKind::kCall:
        break;
      default:
        return Report(
            target->position,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression");
    }
    Expr* keys = Map(Ident(kSortInput), args, false);
    if (keys->kind == ExprKind::kError) return keys;
    return Bind(kSortInput, target, Call(kSortByKeys, {keys}, Ident(kSortInput)));
  }

 private:
  Expr* New(ExprKind kind) { return ast_.New(kind, position_); }

  Expr* Report(uint32_t position, std::string message) {
    issues_.push_back({position, std::move(message)});
    return New(ExprKind::kError);
  }

  // Null, and the variables' names; or the node of the reported problem.
  Expr* Variables(const Args& args, bool two, const char* text, std::string_view& var,
                  std::string_view& var2) {
    for (size_t i = 0; i < (two ? 2 : 1); ++i) {
      if (args[i]->kind != ExprKind::kIdent || args[i]->name.starts_with('.')) {
        return Report(args[i]->position, text);
      }
    }
    var = args[0]->name;
    if (!two) return nullptr;
    var2 = args[1]->name;
    return var == var2 ? Report(args[1]->position, fmt::format("duplicate variable name: {}", var)) : nullptr;
  }

  Expr* Filtered(const Args& args, bool two_variables, Expr* step) {
    bool filtered = args.size() == (two_variables ? 4 : 3);
    return filtered ? Call(operators::kConditional, {args[args.size() - 2], step, Accu()}) : step;
  }

  Expr* Ident(std::string_view name) {
    Expr* out = New(ExprKind::kIdent);
    out->name = name;
    return out;
  }
  Expr* Accu() { return Ident(kAccumulator); }

  Expr* Bool(bool value) {
    Expr* out = New(ExprKind::kConstant);
    out->constant.kind = ConstantKind::kBool;
    out->constant.b = value;
    return out;
  }
  Expr* Int(int64_t value) {
    Expr* out = New(ExprKind::kConstant);
    out->constant.kind = ConstantKind::kInt;
    out->constant.i = value;
    return out;
  }
  Expr* List(const Args& items) {
    Expr* out = New(ExprKind::kList);
    out->args = ast_.Copy(items);
    return out;
  }
  Expr* Call(std::string_view function, const Args& args, Expr* target = nullptr) {
    Expr* out = New(ExprKind::kCall);
    out->name = function;
    out->target = target;
    out->args = ast_.Copy(args);
    return out;
  }

  Expr* Fold(Expr* range, std::string_view var, std::string_view var2, std::string_view accu, Expr* init,
             Expr* condition, Expr* step, Expr* result) {
    Expr* out = New(ExprKind::kComprehension);
    out->name = accu;
    out->fold = ast_.NewFold();
    *out->fold = {var, var2, range, init, condition, step, result};
    return out;
  }

  // A fold over nothing: `result` with the variable bound.
  Expr* Bind(std::string_view var, Expr* value, Expr* result) {
    return Fold(List({}), kUnused, {}, var, value, Bool(false), Ident(var), result);
  }

  Ast& ast_;
  uint32_t position_;
  std::vector<Issue>& issues_;
};

}  // namespace

Expr* ExpandMacro(Ast& ast, const SyntaxOptions& options, uint32_t position, std::string_view name,
                  Expr* target, const Args& args, std::vector<Issue>& issues) {
  using Quantifier = Expander::Quantifier;
  Expander expand(ast, position, issues);
  size_t count = args.size();
  if (!target) return name == "has" && count == 1 ? expand.Has(args) : nullptr;
  bool quantifies = count == 2 || (count == 3 && options.two_variables);
  if (name == "all" && quantifies) return expand.Quantify(Quantifier::kAll, target, args);
  if (name == "exists" && quantifies) return expand.Quantify(Quantifier::kExists, target, args);
  if ((name == "exists_one" || name == "existsOne") && quantifies) {
    return expand.Quantify(Quantifier::kExistsOne, target, args);
  }
  if (name == "map" && (count == 2 || count == 3)) return expand.Map(target, args, false);
  if (name == "filter" && count == 2) return expand.Filter(target, args);
  if (options.two_variables && (count == 3 || count == 4)) {
    if (name == "transformList") return expand.Map(target, args, true);
    if (name == "transformMap") return expand.TransformMap(target, args, false);
    if (name == "transformMapEntry") return expand.TransformMap(target, args, true);
  }
  if (options.optional_syntax && count == 2) {
    if (name == "optMap") return expand.OptMap(target, args, false);
    if (name == "optFlatMap") return expand.OptMap(target, args, true);
  }
  if (options.sort_by && name == "sortBy" && count == 2) return expand.SortBy(target, args);
  if (options.bind && name == "bind" && count == 3 && target->kind == ExprKind::kIdent &&
      target->name == "cel") {
    return expand.CelBind(args);
  }
  return nullptr;
}

}  // namespace keelson::cel
