// Compiling expressions of admission, as validation and the API server both do.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cel/program.h"
#include "lib/k8s/expressions/environment.h"

namespace keelson::k8s {

// What an expression has to evaluate to, by the type that it declares: dyn is none of these.
enum class ExpressionResult {
  kAnything,
  kBool,          // validations, match conditions
  kString,        // messageExpression
  kStringOrNull,  // audit annotations
  kObject,        // apply configurations: Object
  kPatch,         // list(JSONPatch)
};

// Before the checker's problems in CompiledExpression::error.
inline constexpr std::string_view kCompilationFailed = "compilation failed: ";

// Immutable and thread safe.
struct CompiledExpression {
  std::shared_ptr<const cel::Program> program;  // null: none, or an error
  ExpressionEnv env;
  std::string text;
  std::string error;  // as upstream's validation prints it

  bool empty() const { return !program && error.empty(); }
};

struct CompiledVariable {
  std::string name;
  CompiledExpression expression;
};

// Compiles the expressions of one webhook or policy. Not for concurrent use.
class ExpressionCompiler {
 public:
  // `params`: the policy has parameters. `types`: for type checking.
  explicit ExpressionCompiler(bool params, ExpressionTypes types = {})
      : params_(params), types_(std::move(types)) {}

  // A variable of a policy, which the expressions after it may use: of type dyn if it does not compile.
  const CompiledExpression& AddVariable(std::string_view name, std::string_view text, bool stored = true);

  struct Options {
    bool authorizer = true, patch_types = false, stored = true;
    bool variables = true;  // not for match conditions
  };
  CompiledExpression Compile(std::string_view text, ExpressionResult result, const Options& options);
  CompiledExpression Compile(std::string_view text, ExpressionResult result) {
    return Compile(text, result, Options());
  }

  std::vector<CompiledVariable> TakeVariables() { return std::move(variables_); }

 private:
  const ExpressionEnv& EnvOf(const ExpressionScope& scope, bool variables);

  const bool params_;
  const ExpressionTypes types_;
  std::vector<CompiledVariable> variables_;
  ExpressionVariables types_of_variables_;
  std::map<std::pair<ExpressionScope, bool>, ExpressionEnv> made_;  // with the present variables
};

// The declared type in Go's form: string, null_type, google.protobuf.Timestamp, list(int).
std::string GoTypeName(cel::Type type);

}  // namespace keelson::k8s
