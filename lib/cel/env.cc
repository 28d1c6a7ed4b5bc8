#include "lib/cel/env.h"

#include <map>

#include <fmt/format.h>

#include "lib/base/mutex.h"
#include "lib/cel/check/estimate.h"
#include "lib/cel/env_parts.h"
#include "lib/cel/eval/planner.h"
#include "lib/cel/library/library.h"

namespace keelson::cel {
namespace {

// Environment versions that change more than which functions there are.
constexpr int kOptionalSyntax = 28, kLiteralChecks = 29, kTwoVariables = 32, kSortBy = 34;

using TableKey = std::tuple<int, bool, bool>;

std::shared_ptr<const FunctionTable> MakeFunctions(const EnvOptions& options) {
  auto table = std::make_shared<FunctionTable>();
  for (auto library : {StandardOperators, StandardConversions, StandardTexts, StandardTimes,
                       OptionalFunctions, StringFunctions, SetFunctions, MapInsertFunctions, ListFunctions,
                       UrlFunctions, RegexFunctions, AuthorizerFunctions, QuantityFunctions, IpFunctions,
                       CidrFunctions, FormatFunctions, SemverFunctions, KubernetesListFunctions}) {
    table->Add(library(), options.version);
  }
  if (options.json_patch) table->Add(JsonPatchFunctions(), options.version);
  if (options.device_includes) table->Add(DeviceFunctions(), options.version);
  return table;
}

// Environments of one version share their table.
std::shared_ptr<const FunctionTable> FunctionsOf(const EnvOptions& options) {
  static Mutex mutex;
  static std::map<TableKey, std::shared_ptr<const FunctionTable>> tables;
  MutexLock lock(mutex);
  auto& table = tables[{options.version, options.device_includes, options.json_patch}];
  if (!table) table = MakeFunctions(options);
  return table;
}

bool Fits(Type type, const std::vector<Type>& expected) {
  if (expected.empty() || IsDyn(type)) return true;
  for (Type wanted : expected) {
    if (SameType(type, wanted)) return true;
  }
  return false;
}

Error WrongResult(const std::vector<Type>& expected) {
  if (expected.size() == 1) {
    return Error(Code::kInvalid, fmt::format("must evaluate to {}", FormatType(expected[0])));
  }
  std::string names;
  for (Type type : expected) names += (names.empty() ? "" : " ") + FormatType(type);
  return Error(Code::kInvalid, fmt::format("must evaluate to one of [{}]", names));
}

}  // namespace

Env::Env(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Env::~Env() = default;

EnvPtr Env::Make(EnvOptions options) {
  auto parts = std::make_unique<Parts>();
  parts->functions = FunctionsOf(options);
  parts->syntax.optional_syntax = options.version >= kOptionalSyntax;
  parts->syntax.two_variables = options.version >= kTwoVariables;
  parts->syntax.sort_by = options.version >= kSortBy;
  parts->syntax.bind = options.bind;
  parts->syntax.escaped_identifiers = options.escaped_identifiers;
  for (const auto& [name, type] : options.variables) parts->declarations.AddVariable(name, type->type());
  for (const DeclTypePtr& type : options.constructible) {
    parts->declarations.AddType(type->name(), type->type());
  }
  if (options.json_patch) parts->declarations.AddFreeRoot("Object");
  parts->options = std::move(options);
  return EnvPtr(new Env(std::move(parts)));
}

EnvSet EnvSet::Make(EnvOptions options) {
  EnvSet out;
  options.version = kStoredExpressions;
  out.stored_expressions = Env::Make(options);
  options.version = kNewExpressions;
  out.new_expressions = Env::Make(std::move(options));
  return out;
}

int Env::VariableIndex(std::string_view name) const { return parts_->declarations.FindVariable(name); }
size_t Env::variable_count() const { return parts_->declarations.variables().size(); }
const std::string& Env::variable_name(size_t index) const {
  return parts_->declarations.variables()[index].name;
}

Result<std::shared_ptr<const Program>> Env::Compile(std::string_view expression,
                                                    const std::vector<Type>& expected) const {
  std::vector<Issue> issues;
  std::unique_ptr<Ast> ast = Parse(expression, parts_->syntax, issues);
  if (!issues.empty()) return Error(Code::kInvalid, DisplayIssues(expression, std::move(issues)));
  CheckOptions check{parts_->options.version >= kLiteralChecks};
  std::unique_ptr<Checked> checked = Check(*ast, *parts_->functions, parts_->declarations, check, issues);
  if (!issues.empty()) return Error(Code::kInvalid, DisplayIssues(expression, std::move(issues)));
  auto program = std::make_unique<Program::Parts>();
  program->result_type = checked->info[ast->root->id].type;
  if (!Fits(program->result_type, expected)) return WrongResult(expected);
  program->env = shared_from_this();
  program->expression = expression;
  program->types = checked->pool;
  program->free_types = std::move(checked->free_types);
  program->slots = static_cast<size_t>(checked->slots);
  program->uses.resize(parts_->declarations.variables().size());
  for (const ExprInfo& info : checked->info) {
    if (info.ref == RefKind::kVariable) program->uses[static_cast<size_t>(info.index)] = true;
  }
  if (parts_->options.check_cost) {
    std::vector<const DeclType*> variables;
    for (const auto& [name, type] : parts_->options.variables) {
      bool shaped = type->form() != DeclForm::kDyn && type->form() != DeclForm::kNative;
      variables.push_back(shaped ? type.get() : nullptr);
    }
    Range64 estimate = EstimateCost(*ast, *checked, variables);
    program->estimate = {estimate.min, estimate.max};
  }
  program->root = Plan(*ast, *checked, program->arena);
  return std::shared_ptr<const Program>(new Program(std::move(program)));
}

}  // namespace keelson::cel
