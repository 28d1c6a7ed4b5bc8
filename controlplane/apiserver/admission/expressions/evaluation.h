// Evaluates expressions of one webhook or policy over one request, within one budget
// (k8s.io/apiserver/pkg/admission/plugin/cel, activation.go and composition.go).
#pragma once

#include <cstdint>
#include <vector>

#include "controlplane/apiserver/admission/expressions/input.h"
#include "lib/k8s/expressions/compiler.h"

namespace keelson::apiserver {

struct EvaluationOptions {
  const ExpressionObject* params = nullptr;                       // null: params is null
  const std::vector<k8s::CompiledVariable>* variables = nullptr;  // null: none
  bool authorizer = true;
  bool ns = true;  // false: namespaceObject is null
  uint64_t budget = cel::kRuntimeBudget;
};

// Variables of the policy are evaluated when an expression first uses them, and then kept. Values live as long as the
// evaluation. What the options refer to, and the input, have to outlive it. Not for concurrent use.
class Evaluation {
 public:
  Evaluation(const ExpressionInput& input, const EvaluationOptions& options);
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;
  ~Evaluation();

  // kInvalid, in upstream's words: "expression 'a.b' resulted in error: no such key: b". After an error with
  // exhausted() nothing more can be evaluated.
  Result<cel::Value> Evaluate(const k8s::CompiledExpression& expression);
  bool exhausted() const { return exhausted_; }
  uint64_t left() const { return left_; }
  cel::Arena& arena() { return arena_; }

 private:
  class Variables;

  cel::Activation Bind(const k8s::ExpressionEnv& env);
  Result<cel::Value> Run(const k8s::CompiledExpression& expression, uint64_t& cost);
  bool Spend(uint64_t cost);

  const ExpressionInput& input_;
  const EvaluationOptions options_;
  cel::Arena arena_;
  cel::Value object_, old_object_, request_, ns_, params_, authorizer_, request_resource_;
  Variables* variables_ = nullptr;  // of the arena
  uint64_t left_;
  uint64_t of_variables_ = 0;  // spent since the last expression began
  bool exhausted_ = false;
};

}  // namespace keelson::apiserver
