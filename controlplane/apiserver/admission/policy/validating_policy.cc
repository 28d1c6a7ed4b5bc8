#include "controlplane/apiserver/admission/policy/validating_policy.h"

#include <fmt/format.h>

#include "lib/base/text.h"

namespace keelson::apiserver::policy {
namespace {

using k8s::ExpressionResult;

constexpr size_t kMaxMessage = 5 * 1024;

PolicyDecision Failed(const ValidatingPolicy& policy, std::string message) {
  return {!policy.head.ignore_failures, true, std::move(message), "", {}};
}

Verdict FailedAsWhole(const ValidatingPolicy& policy, const Error& error) {
  return {{Failed(policy, error.message())}, {}};
}

// The message of a broken rule. `evaluated`: by its messageExpression; null: it has none, or it failed.
std::string MessageOf(const ValidatingPolicy::Rule& rule, const cel::Value* evaluated) {
  if (evaluated && evaluated->Is(cel::ValueKind::kString)) {
    const std::string_view text = Trim(evaluated->text());
    if (!text.empty() && text.size() <= kMaxMessage && text.find('\n') == std::string_view::npos) {
      return std::string(text);
    }
  }
  if (!rule.message.empty()) return std::string(Trim(rule.message));
  return fmt::format("failed expression: {}", Trim(rule.expression.text));
}

// Gives broken rules their messages. They share what is left of the rules' budget; when it runs out, nothing that
// could be evaluated counts.
void AddMessages(const ValidatingPolicy& policy, const ExpressionInput& input, EvaluationOptions options,
                 uint64_t budget, std::vector<PolicyDecision>& decisions) {
  options.authorizer = false;
  options.budget = budget;
  Evaluation evaluation(input, options);
  for (size_t i = 0; i < policy.rules.size(); ++i) {
    const ValidatingPolicy::Rule& rule = policy.rules[i];
    std::optional<cel::Value> text;
    if (!rule.message_expression.empty()) {
      const Result<cel::Value> value = evaluation.Evaluate(rule.message_expression);
      if (evaluation.exhausted()) {
        for (PolicyDecision& decision : decisions) {
          if (decision.failed) continue;
          decision = Failed(policy, "failed messageExpression: " + value.error().message());
        }
        return;
      }
      if (value) text = *value;
    }
    if (decisions[i].deny && !decisions[i].failed) {
      decisions[i].message = MessageOf(rule, text ? &*text : nullptr);
    }
  }
}

AuditValue AuditOf(const ValidatingPolicy& policy, const ValidatingPolicy::Annotation& annotation,
                   const Result<cel::Value>& value) {
  AuditValue out{AuditValue::Kind::kExclude, annotation.key, ""};
  if (!value) {
    if (policy.head.ignore_failures) return out;
    out.kind = AuditValue::Kind::kError;
    out.text = value.error().message();
  } else if (value->Is(cel::ValueKind::kString)) {
    out.text = Trim(value->text());
    if (!out.text.empty()) out.kind = AuditValue::Kind::kPublish;
  } else if (!value->Is(cel::ValueKind::kNull)) {
    out.kind = AuditValue::Kind::kError;
    out.text = fmt::format(
        "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or "
        "null.",
        annotation.value.text, cel::TypeName(*value));
  }
  return out;
}

}  // namespace

ValidatingPolicy CompileValidatingPolicy(const admissionregistrationv1::ValidatingAdmissionPolicy& policy) {
  ValidatingPolicy out;
  out.head = HeadOf(policy);
  const auto& spec = policy.spec();
  out.conditions = MatchConditions(
      spec.match_conditions(),
      {out.head.name, "policy", "validate", out.head.ignore_failures, out.head.param_kind.has_value()});
  k8s::ExpressionCompiler compiler(spec.has_param_kind());
  for (const auto& variable : spec.variables()) compiler.AddVariable(variable.name(), variable.expression());
  k8s::ExpressionCompiler::Options without_authorizer;
  without_authorizer.authorizer = false;
  for (const auto& validation : spec.validations()) {
    ValidatingPolicy::Rule rule;
    rule.expression = compiler.Compile(validation.expression(), ExpressionResult::kBool);
    if (!validation.message_expression().empty()) {
      rule.message_expression =
          compiler.Compile(validation.message_expression(), ExpressionResult::kString, without_authorizer);
    }
    rule.message = validation.message();
    rule.reason = validation.reason();
    out.rules.push_back(std::move(rule));
  }
  for (const auto& annotation : spec.audit_annotations()) {
    out.annotations.push_back(
        {annotation.key(), compiler.Compile(annotation.value_expression(), ExpressionResult::kStringOrNull)});
  }
  out.variables = compiler.TakeVariables();
  return out;
}

Verdict Judge(const ValidatingPolicy& policy, const ExpressionInput& input, const ExpressionObject* params) {
  const Result<bool> match = policy.conditions.Match(input, params);
  if (!match) return FailedAsWhole(policy, match.error());
  if (!*match) return {};
  EvaluationOptions options;
  options.params = params;
  options.variables = &policy.variables;
  Verdict out;
  uint64_t left = options.budget;
  bool broken = false;
  {
    Evaluation evaluation(input, options);
    for (const ValidatingPolicy::Rule& rule : policy.rules) {
      const SteadyTime begin = SteadyTime::clock::now();
      const Result<cel::Value> value = evaluation.Evaluate(rule.expression);
      if (evaluation.exhausted()) return FailedAsWhole(policy, value.error());
      PolicyDecision decision;
      if (!value) {
        decision = Failed(policy, value.error().message());
      } else if (!value->IsTrue()) {
        decision.deny = true;
        decision.reason = rule.reason;
        broken = true;
      }
      decision.took = SteadyTime::clock::now() - begin;
      out.decisions.push_back(std::move(decision));
    }
    left = evaluation.left();
  }
  if (broken) AddMessages(policy, input, options, left, out.decisions);
  if (policy.annotations.empty()) return out;
  options.authorizer = false;
  Evaluation evaluation(input, options);
  for (const ValidatingPolicy::Annotation& annotation : policy.annotations) {
    const Result<cel::Value> value = evaluation.Evaluate(annotation.value);
    if (evaluation.exhausted()) return FailedAsWhole(policy, value.error());
    out.annotations.push_back(AuditOf(policy, annotation, value));
  }
  return out;
}

}  // namespace keelson::apiserver::policy
