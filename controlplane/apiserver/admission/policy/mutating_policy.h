// A MutatingAdmissionPolicy, ready for use (k8s.io/apiserver/pkg/admission/plugin/policy/mutating).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/expressions/match_conditions.h"
#include "controlplane/apiserver/admission/policy/policy_source.h"

namespace keelson::apiserver::policy {

// Immutable and thread safe.
struct MutatingPolicy {
  struct Mutation {
    bool apply = false;  // an apply configuration; else a JSON patch
    k8s::CompiledExpression expression;
  };

  PolicyHead head;
  MatchConditions conditions;
  std::vector<k8s::CompiledVariable> variables;
  std::vector<Mutation> mutations;
  bool reinvoke = false;  // reinvocationPolicy IfNeeded
};

// What does not compile is kept as an error, which failurePolicy judges.
MutatingPolicy CompileMutatingPolicy(const admissionregistrationv1::MutatingAdmissionPolicy& policy);

// The object of the input, mutated, with its defaults. `params` null: there are none. An error is the policy's, in
// upstream's words, and failurePolicy judges it; except kInternal: then the result was no object of its kind.
Result<std::unique_ptr<api::Message>> Mutate(const MutatingPolicy& policy,
                                             const MutatingPolicy::Mutation& mutation,
                                             const ExpressionInput& input, const api::Message& object,
                                             const ExpressionObject* params);

}  // namespace keelson::apiserver::policy
