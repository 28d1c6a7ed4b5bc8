#include "lib/k8s/expressions/compiler.h"

#include <fmt/format.h>

namespace keelson::k8s {

namespace {

using cel::DeclType;
using cel::DeclTypePtr;
using cel::TypeKind;

// What later expressions know of a variable: nothing of objects and optional values, as upstream.
DeclTypePtr DeclTypeOf(cel::Type type) {
  switch (type->kind) {
    case TypeKind::kBool:
      return DeclType::Bool();
    case TypeKind::kInt:
      return DeclType::Int();
    case TypeKind::kUint:
      return DeclType::Native(&cel::types::kUint);
    case TypeKind::kDouble:
      return DeclType::Double();
    case TypeKind::kString:
      return DeclType::String();
    case TypeKind::kBytes:
      return DeclType::Bytes();
    case TypeKind::kDuration:
      return DeclType::Duration();
    case TypeKind::kTimestamp:
      return DeclType::DateTime();
    case TypeKind::kNull:
      return DeclType::Native(&cel::types::kNull);
    case TypeKind::kList:
      if (type->params == 1) return DeclType::List(DeclTypeOf(type->param[0]));
      break;
    case TypeKind::kMap:
      if (type->params == 2 && type->param[0]->kind == TypeKind::kString) {
        return DeclType::Map(DeclTypeOf(type->param[1]));
      }
      break;
    default:
      break;
  }
  return DeclType::Dyn();
}

bool IsNamed(cel::Type type, std::string_view name) {
  return type->kind == TypeKind::kObject && type->name == name;
}

bool Fits(cel::Type type, ExpressionResult result) {
  switch (result) {
    case ExpressionResult::kAnything:
      return true;
    case ExpressionResult::kBool:
      return type->kind == TypeKind::kBool;
    case ExpressionResult::kString:
      return type->kind == TypeKind::kString;
    case ExpressionResult::kStringOrNull:
      return type->kind == TypeKind::kString || type->kind == TypeKind::kNull;
    case ExpressionResult::kObject:
      return IsNamed(type, "Object");
    case ExpressionResult::kPatch:
      return type->kind == TypeKind::kList && type->params == 1 && IsNamed(type->param[0], "JSONPatch");
  }
  return false;
}

std::string_view Wanted(ExpressionResult result) {
  constexpr std::string_view kNames[] = {"dyn",    "bool",           "string", "one of [string null_type]",
                                         "Object", "list(JSONPatch)"};
  return kNames[static_cast<size_t>(result)];
}

}  // namespace

std::string GoTypeName(cel::Type type) {
  std::string out(cel::RuntimeName(type));
  if (type->params == 0) return out;
  out += '(';
  for (int i = 0; i < type->params; ++i) out += (i > 0 ? ", " : "") + GoTypeName(type->param[i]);
  return out + ')';
}

const ExpressionEnv& ExpressionCompiler::EnvOf(const ExpressionScope& scope, bool variables) {
  if (!variables && !types_.object && !types_.params) return ExpressionEnvOf(scope);
  auto [it, added] = made_.try_emplace({scope, variables});
  if (added) it->second = MakeExpressionEnv(scope, variables ? &types_of_variables_ : nullptr, types_);
  return it->second;
}

CompiledExpression ExpressionCompiler::Compile(std::string_view text, ExpressionResult result,
                                               const Options& options) {
  CompiledExpression out;
  out.text = text;
  out.env = EnvOf({params_, options.authorizer, options.patch_types, options.stored},
                  options.variables && !variables_.empty());
  auto program = out.env.env->Compile(text);
  if (!program) {
    out.error = std::string(kCompilationFailed) + program.error().message();
  } else if (!Fits((*program)->result_type(), result)) {
    out.error =
        fmt::format("must evaluate to {} but got {}", Wanted(result), GoTypeName((*program)->result_type()));
  } else {
    out.program = std::move(*program);
  }
  return out;
}

const CompiledExpression& ExpressionCompiler::AddVariable(std::string_view name, std::string_view text,
                                                          bool stored) {
  Options options;
  options.stored = stored;
  CompiledExpression compiled = Compile(text, ExpressionResult::kAnything, options);
  DeclTypePtr type =
      compiled.program ? DeclTypeOf(compiled.program->result_type()) : DeclTypePtr(DeclType::Dyn());
  made_.clear();
  // The later of two of one name counts.
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i].name != name) continue;
    types_of_variables_[i].second = std::move(type);
    variables_[i].expression = std::move(compiled);
    return variables_[i].expression;
  }
  types_of_variables_.emplace_back(name, std::move(type));
  return variables_.emplace_back(CompiledVariable{std::string(name), std::move(compiled)}).expression;
}

}  // namespace keelson::k8s
