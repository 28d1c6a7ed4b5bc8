#include "controlplane/apiserver/admission/expressions/match_conditions.h"

#include "lib/base/text.h"
#include "lib/metrics/metrics.h"

namespace keelson::apiserver {
namespace {

metrics::Family& failures = metrics::Counter(
    "apiserver_admission_match_condition_evaluation_errors_total",
    "Admission match condition evaluation errors count, identified by name of resource containing the match "
    "condition and broken out for each kind containing matchConditions (webhook or policy), operation and "
    "admission type (validate or admit).",
    {"kind", "name", "operation", "type"});
metrics::Family& exclusions = metrics::Counter(
    "apiserver_admission_match_condition_exclusions_total",
    "Admission match condition evaluation exclusions count, identified by name of resource containing the "
    "match condition and broken out for each kind containing matchConditions (webhook or policy), operation "
    "and admission type (validate or admit).",
    {"kind", "name", "operation", "type"});
metrics::Family& seconds = metrics::Histograms(
    "apiserver_admission_match_condition_evaluation_seconds",
    "Admission match condition evaluation time in seconds, identified by name and broken out for each kind "
    "containing matchConditions (webhook or policy), operation and type (validate or admit).",
    {0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, {"kind", "name", "operation", "type"});

}  // namespace

MatchConditions::MatchConditions(
    const google::protobuf::RepeatedPtrField<api::admissionregistration::v1::MatchCondition>& conditions,
    Owner owner)
    : owner_(std::move(owner)) {
  k8s::ExpressionCompiler compiler(owner_.params);
  for (const auto& condition : conditions) {
    conditions_.push_back(compiler.Compile(condition.expression(), k8s::ExpressionResult::kBool));
  }
}

Result<bool> MatchConditions::Match(const ExpressionInput& input, const ExpressionObject* params) const {
  if (conditions_.empty()) return true;
  const SteadyTime begin = SteadyTime::clock::now();
  Result<bool> match = Evaluate(input, params);
  const std::vector<std::string> labels = {owner_.kind, owner_.name,
                                           std::string(NameOf(input.request().operation)), owner_.type};
  seconds.HistogramWith(labels).Observe(
      std::chrono::duration<double>(SteadyTime::clock::now() - begin).count());
  if (match && !*match) exclusions.With(labels).Increment();
  if (match) return match;
  if (owner_.ignore_failures) return false;
  return match.error();
}

Result<bool> MatchConditions::Evaluate(const ExpressionInput& input, const ExpressionObject* params) const {
  EvaluationOptions options;
  options.params = params;
  options.ns = false;  // as upstream
  options.budget = cel::kMatchConditionsBudget;
  Evaluation evaluation(input, options);
  std::vector<std::string> errors;
  bool excluded = false;
  for (const k8s::CompiledExpression& condition : conditions_) {
    const Result<cel::Value> value = evaluation.Evaluate(condition);
    // Without a budget nothing is known of the conditions.
    if (evaluation.exhausted()) return value.error();
    if (!value) {
      errors.push_back(value.error().message());
      failures.With({owner_.kind, owner_.name, std::string(NameOf(input.request().operation)), owner_.type})
          .Increment();
    } else if (!value->IsTrue()) {
      excluded = true;
      break;
    }
  }
  if (excluded) return false;
  if (!errors.empty()) return Error(Code::kInvalid, Aggregate(errors));
  return true;
}

}  // namespace keelson::apiserver
