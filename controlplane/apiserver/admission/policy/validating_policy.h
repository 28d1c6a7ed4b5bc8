// A ValidatingAdmissionPolicy, ready for use, and its judgement
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating, validator.go).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/expressions/match_conditions.h"
#include "controlplane/apiserver/admission/policy/policy_source.h"

namespace keelson::apiserver::policy {

// Immutable and thread safe.
struct ValidatingPolicy {
  struct Rule {
    k8s::CompiledExpression expression, message_expression;  // the second may be empty
    std::string message, reason;
  };
  struct Annotation {
    std::string key;
    k8s::CompiledExpression value;
  };

  PolicyHead head;
  MatchConditions conditions;
  std::vector<k8s::CompiledVariable> variables;
  std::vector<Rule> rules;
  std::vector<Annotation> annotations;
};

// What does not compile is kept as an error, which failurePolicy judges.
ValidatingPolicy CompileValidatingPolicy(const admissionregistrationv1::ValidatingAdmissionPolicy& policy);

// About one rule, or about all of them.
struct PolicyDecision {
  bool deny = false;
  bool failed = false;  // the expression could not be evaluated
  std::string message;  // unless admitted
  std::string reason;   // of a Status; empty: Invalid
  std::chrono::duration<double> took{};
};

struct AuditValue {
  enum class Kind { kPublish, kExclude, kError } kind = Kind::kExclude;
  std::string key, text;  // the value, or what went wrong
};

struct Verdict {
  std::vector<PolicyDecision> decisions;  // by rule
  std::vector<AuditValue> annotations;
};

// `params` null: there are none.
Verdict Judge(const ValidatingPolicy& policy, const ExpressionInput& input, const ExpressionObject* params);

}  // namespace keelson::apiserver::policy
