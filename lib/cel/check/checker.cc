#include "lib/cel/check/checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/cel/check/format_calls.h"
#include "lib/cel/check/literals.h"
#include "lib/cel/check/unify.h"

namespace keelson::cel {
namespace {

// The type inside of optional(T), or the type itself.
Type Unwrap(Type type, bool& optional) {
  optional = IsOptional(type) && type->params == 1;
  return optional ? type->param[0] : type;
}

std::string Signature(const std::vector<Type>& args, bool member) {
  std::string out = member ? FormatType(args[0]) + ".(" : "(";
  for (size_t i = member ? 1 : 0; i < args.size(); ++i) {
    if (i > (member ? 1U : 0U)) out += ", ";
    out += FormatType(args[i]);
  }
  return out + ")";
}

class Checker {
 public:
  Checker(const Ast& ast, const FunctionTable& functions, const Declarations& declarations, Checked& out,
          std::vector<Issue>& issues)
      : functions_(functions), declarations_(declarations), out_(out), issues_(issues), unifier_(out.types) {
    out_.info.resize(ast.size());
  }

  void Run(const Expr* root) {
    Visit(root);
    for (ExprInfo& info : out_.info) {
      if (info.type) info.type = unifier_.Substitute(info.type, true);
    }
  }

 private:
  ExprInfo& Info(const Expr* expr) { return out_.info[expr->id]; }
  Type TypeOf(const Expr* expr) { return Info(expr).type; }
  void Set(const Expr* expr, Type type) { Info(expr).type = type; }

  void Report(const Expr* expr, std::string message) {
    issues_.push_back({expr->position, std::move(message)});
  }

  void ReportUndeclared(const Expr* expr, std::string_view name) {
    Report(expr, fmt::format("undeclared reference to '{}' (in container '')", name));
    Set(expr, &types::kError);
  }

  void ReportMismatch(const Expr* expr, Type expected, Type found) {
    Report(expr, fmt::format("expected type '{}' but found '{}'", Show(expected), Show(found)));
  }

  std::string Show(Type type) { return FormatType(unifier_.Substitute(type, false)); }

  // Macros share subtrees; each is looked at once.
  void Visit(const Expr* expr) {
    if (TypeOf(expr)) return;
    switch (expr->kind) {
      case ExprKind::kError:
        return Set(expr, &types::kError);
      case ExprKind::kConstant:
        return VisitConstant(expr);
      case ExprKind::kIdent:
        return VisitIdent(expr);
      case ExprKind::kSelect:
        return VisitSelect(expr);
      case ExprKind::kCall:
        return VisitCall(expr);
      case ExprKind::kList:
        return VisitList(expr);
      case ExprKind::kMap:
        return VisitMap(expr);
      case ExprKind::kStruct:
        return VisitStruct(expr);
      case ExprKind::kComprehension:
        return VisitComprehension(expr);
    }
  }

  void VisitConstant(const Expr* expr) {
    constexpr const TypeNode* kTypes[] = {&types::kNull,   &types::kBool,   &types::kInt,  &types::kUint,
                                          &types::kDouble, &types::kString, &types::kBytes};
    Set(expr, kTypes[static_cast<size_t>(expr->constant.kind)]);
  }

  Type FindType(std::string_view name) {
    if (Type type = declarations_.FindType(name)) return type;
    if (!declarations_.IsFree(name)) return nullptr;
    return out_.free_types.emplace_back(DeclType::Object(std::string(name), {}))->type();
  }

  // What a declared name stands for.
  bool Resolve(const Expr* expr, std::string_view name) {
    ExprInfo& info = Info(expr);
    bool absolute = name.starts_with('.');
    if (absolute) name.remove_prefix(1);
    for (size_t i = locals_.size(); i-- > 0 && !absolute;) {
      if (locals_[i].name != name) continue;
      info.ref = RefKind::kLocal;
      info.index = locals_[i].slot;
      info.type = locals_[i].type;
      return true;
    }
    if (int index = declarations_.FindVariable(name); index >= 0) {
      info.ref = RefKind::kVariable;
      info.index = index;
      info.type = declarations_.variables()[static_cast<size_t>(index)].type;
      return true;
    }
    if (Type type = FindType(name)) {
      info.ref = RefKind::kTypeValue;
      info.value_type = type;
      info.type = out_.types.TypeOf(type);
      return true;
    }
    return false;
  }

  void VisitIdent(const Expr* expr) {
    if (!Resolve(expr, expr->name)) ReportUndeclared(expr, expr->name);
  }

  // True when the chain of names begins like a declared name with dots.
  std::string DottedName(const Expr* expr) {
    const Expr* root = expr;
    while (root->kind == ExprKind::kSelect && !root->test_only) root = root->target;
    if (root->kind != ExprKind::kIdent) return {};
    std::string_view name = root->name;
    if (name.starts_with('.')) name.remove_prefix(1);
    return declarations_.HasDotted(name) ? QualifiedName(expr) : std::string();
  }

  void VisitSelect(const Expr* expr) {
    if (std::string name = expr->test_only ? std::string() : DottedName(expr);
        !name.empty() && Resolve(expr, name)) {
      return;
    }
    Type field = FieldType(expr, expr->target, expr->name, false);
    Set(expr, expr->test_only ? &types::kBool : unifier_.Substitute(field, false));
  }

  Type FieldType(const Expr* expr, const Expr* operand, std::string_view field, bool optional) {
    Visit(operand);
    bool is_optional = false;
    Type target = Unwrap(unifier_.Substitute(TypeOf(operand), false), is_optional);
    Type result = &types::kError;
    switch (target->kind) {
      case TypeKind::kMap:
        result = target->param[1];
        break;
      case TypeKind::kObject:
        result = DeclaredField(expr, target, field);
        break;
      case TypeKind::kParam:
        unifier_.Assignable(&types::kDyn, target);
        result = &types::kDyn;
        break;
      default:
        if (!IsDynOrError(target)) {
          Report(expr, fmt::format("type '{}' does not support field selection", FormatType(target)));
        }
        result = &types::kDyn;
    }
    return is_optional || optional ? out_.types.Optional(result) : result;
  }

  Type DeclaredField(const Expr* at, Type object, std::string_view field) {
    if (declarations_.IsFree(object->name)) return &types::kDyn;
    if (!object->decl) {
      Report(at, fmt::format("unexpected failed resolution of '{}'", object->name));
      return &types::kError;
    }
    if (const DeclField* found = object->decl->FindField(field)) return found->type->type();
    Report(at, fmt::format("undefined field '{}'", field));
    return &types::kError;
  }

  void VisitCall(const Expr* expr) {
    if (expr->name == operators::kOptSelect && !expr->target) {
      Type field = FieldType(expr, expr->args[0], expr->args[1]->constant.text, true);
      Visit(expr->args[1]);
      Set(expr, unifier_.Substitute(field, false));
      Info(expr).ref = RefKind::kCall;
      Info(expr).function = functions_.Find(operators::kOptSelect);
      if (Info(expr).function) Info(expr).overloads = Info(expr).function->overloads;
      return;
    }
    for (const Expr* arg : expr->args) Visit(arg);
    if (!expr->target) {
      std::string_view name = expr->name;
      if (name.starts_with('.')) name.remove_prefix(1);
      const Function* function = functions_.Find(name);
      return function ? ResolveOverload(expr, function, nullptr) : ReportUndeclared(expr, expr->name);
    }
    // a.b.c() is the function a.b.c, or c of the receiver a.b.
    if (std::string prefix = QualifiedName(expr->target); !prefix.empty()) {
      if (const Function* function = functions_.Find(prefix + "." + std::string(expr->name))) {
        Info(expr).global = true;
        return ResolveOverload(expr, function, nullptr);
      }
    }
    Visit(expr->target);
    const Function* function = functions_.Find(expr->name);
    return function ? ResolveOverload(expr, function, expr->target) : ReportUndeclared(expr, expr->name);
  }

  void ResolveOverload(const Expr* expr, const Function* function, const Expr* target) {
    if (function->name == operators::kAnd || function->name == operators::kOr) {
      return ResolveLogical(expr, function);
    }
    std::vector<Type> args;
    if (target) args.push_back(TypeOf(target));
    for (const Expr* arg : expr->args) args.push_back(TypeOf(arg));
    ExprInfo& info = Info(expr);
    info.ref = RefKind::kCall;
    info.function = function;
    Type result = nullptr;
    for (const Overload* overload : function->overloads) {
      if (overload->member != (target != nullptr) || overload->args.size() != args.size()) continue;
      int32_t base = overload->generic ? unifier_.NewVariables(overload->parameters) : 0;
      if (!AllAssignable(args, *overload, base)) continue;
      info.overloads.push_back(overload);
      Type returned = overload->generic
                          ? unifier_.Substitute(unifier_.Instantiate(overload->result, base), false)
                          : overload->result;
      if (!result) {
        result = returned;
      } else if (!IsDyn(result) && !SameType(returned, result)) {
        result = &types::kDyn;
      }
    }
    if (!result) {
      for (Type& arg : args) arg = unifier_.Substitute(arg, true);
      Report(expr, fmt::format("found no matching overload for '{}' applied to '{}'", function->name,
                               Signature(args, target != nullptr)));
      result = &types::kError;
    }
    Set(expr, result);
  }

  bool AllAssignable(const std::vector<Type>& args, const Overload& overload, int32_t base) {
    // As one: what a later argument refuses, an earlier one has not bound.
    return unifier_.AllOrNothing([&] {
      for (size_t i = 0; i < args.size(); ++i) {
        Type wanted = overload.generic ? unifier_.Instantiate(overload.args[i], base) : overload.args[i];
        if (!unifier_.Assignable(args[i], wanted)) return false;
      }
      return true;
    });
  }

  void ResolveLogical(const Expr* expr, const Function* function) {
    bool fits = true;
    for (const Expr* arg : expr->args) {
      if (unifier_.Assignable(TypeOf(arg), &types::kBool)) continue;
      ReportMismatch(arg, &types::kBool, TypeOf(arg));
      fits = false;
    }
    Info(expr).ref = RefKind::kCall;
    Info(expr).function = function;
    Info(expr).overloads = function->overloads;
    Set(expr, fits ? &types::kBool : &types::kError);
  }

  // The common type of elements so far and one more.
  Type Join(const Expr* expr, Type previous, Type current) {
    if (!previous) return current;
    if (unifier_.Assignable(previous, current)) return Unifier::MostGeneral(previous, current);
    ReportMismatch(expr, previous, current);
    return &types::kError;
  }

  // Of an element marked with '?': what is inside of the optional.
  Type Element(const Expr* expr, bool optional) {
    Type type = TypeOf(expr);
    if (!optional) return type;
    bool is_optional = false;
    Type inner = Unwrap(unifier_.Substitute(type, false), is_optional);
    if (!is_optional && !IsDyn(inner)) ReportMismatch(expr, out_.types.Optional(inner), inner);
    return inner;
  }

  void VisitList(const Expr* expr) {
    Type element = nullptr;
    for (size_t i = 0; i < expr->args.size(); ++i) {
      Visit(expr->args[i]);
      element =
          Join(expr->args[i], element, Element(expr->args[i], !expr->optional.empty() && expr->optional[i]));
    }
    Set(expr, out_.types.List(element ? element : unifier_.NewVariable()));
  }

  void VisitMap(const Expr* expr) {
    Type key = nullptr, value = nullptr;
    for (size_t i = 0; i < expr->args.size(); i += 2) {
      const Expr *key_expr = expr->args[i], *value_expr = expr->args[i + 1];
      Visit(key_expr);
      key = Join(key_expr, key, TypeOf(key_expr));
      Visit(value_expr);
      value = Join(value_expr, value, Element(value_expr, !expr->optional.empty() && expr->optional[i / 2]));
    }
    if (!key) key = unifier_.NewVariable(), value = unifier_.NewVariable();
    Set(expr, out_.types.Map(key, value));
  }

  void VisitStruct(const Expr* expr) {
    std::string_view name = expr->name;
    if (name.starts_with('.')) name.remove_prefix(1);
    Type type = FindType(name);
    if (!type) {
      bool variable = declarations_.FindVariable(name) >= 0;
      if (!variable) return ReportUndeclared(expr, expr->name);
      Report(expr,
             fmt::format(
                 "'{}' is not a type",
                 FormatType(
                     declarations_.variables()[static_cast<size_t>(declarations_.FindVariable(name))].type)));
    } else if (type->kind != TypeKind::kObject) {
      Report(expr, fmt::format("'{}' is not a message type", type->name));
      type = nullptr;
    }
    Set(expr, type ? type : &types::kError);
    Info(expr).value_type = type;
    for (size_t i = 0; i < expr->args.size(); ++i) {
      const Expr* value = expr->args[i];
      Visit(value);
      Expr at;
      at.position = expr->positions[i];
      Type field = type ? DeclaredField(&at, type, expr->names[i]) : &types::kError;
      Type found = Element(value, !expr->optional.empty() && expr->optional[i]);
      if (!unifier_.Assignable(field, found)) {
        Report(&at, fmt::format("expected type of field '{}' is '{}' but provided type is '{}'",
                                expr->names[i], Show(field), Show(found)));
      }
    }
  }

  struct Local {
    std::string_view name;
    Type type;
    int slot;
  };

  void Declare(std::string_view name, Type type) {
    locals_.push_back({name, type, next_slot_++});
    out_.slots = std::max(out_.slots, next_slot_);
  }

  void VisitComprehension(const Expr* expr) {
    const Comprehension& fold = *expr->fold;
    Visit(fold.range);
    Visit(fold.init);
    Type range = unifier_.Substitute(TypeOf(fold.range), false);
    size_t scope = locals_.size();
    int first_slot = next_slot_;
    Info(expr).index = first_slot;
    Declare(expr->name, TypeOf(fold.init));
    bool two = !fold.var2.empty();
    Type first = &types::kError, second = &types::kError;
    switch (range->kind) {
      case TypeKind::kList:
        first = two ? &types::kInt : range->param[0];
        second = range->param[0];
        break;
      case TypeKind::kMap:
        first = range->param[0];
        second = range->param[1];
        break;
      case TypeKind::kDyn:
      case TypeKind::kError:
      case TypeKind::kParam:
        unifier_.Assignable(&types::kDyn, range);
        first = second = &types::kDyn;
        break;
      default:
        Report(
            fold.range,
            fmt::format(
                "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                FormatType(range)));
    }
    Declare(fold.var, first);
    if (two) Declare(fold.var2, second);
    Visit(fold.condition);
    AssertType(fold.condition, &types::kBool);
    Visit(fold.step);
    AssertType(fold.step, TypeOf(fold.init));
    locals_.resize(scope + 1);
    Visit(fold.result);
    locals_.resize(scope);
    next_slot_ = first_slot;
    Set(expr, unifier_.Substitute(TypeOf(fold.result), false));
  }

  void AssertType(const Expr* expr, Type type) {
    if (!unifier_.Assignable(type, TypeOf(expr))) ReportMismatch(expr, type, TypeOf(expr));
  }

  const FunctionTable& functions_;
  const Declarations& declarations_;
  Checked& out_;
  std::vector<Issue>& issues_;
  Unifier unifier_;
  std::vector<Local> locals_;
  int next_slot_ = 0;
};

}  // namespace

std::unique_ptr<Checked> Check(const Ast& ast, const FunctionTable& functions,
                               const Declarations& declarations, const CheckOptions& options,
                               std::vector<Issue>& issues) {
  auto out = std::make_unique<Checked>();
  Checker(ast, functions, declarations, *out, issues).Run(ast.root);
  if (options.check_literals && issues.empty()) {
    CheckLiterals(ast.root, *out, issues);
    CheckFormatCalls(ast.root, *out, issues);
  }
  return out;
}

}  // namespace keelson::cel
