// The matchConditions of a webhook or policy: CEL expressions over the request, all of which must be true.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/admission/expressions/evaluation.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"

namespace keelson::apiserver {

// Immutable and thread safe.
class MatchConditions {
 public:
  // Whose conditions they are, for metrics.
  struct Owner {
    std::string name;
    std::string kind;              // webhook, policy
    std::string type;              // admit, validating, validate
    bool ignore_failures = false;  // failurePolicy
    bool params = false;           // the policy has parameters
  };

  MatchConditions() = default;
  MatchConditions(
      const google::protobuf::RepeatedPtrField<api::admissionregistration::v1::MatchCondition>& conditions,
      Owner owner);

  bool empty() const { return conditions_.empty(); }
  // Whether all conditions are true. One that is false decides, whatever the others are. An error: none is false, one
  // could not be evaluated, and failures are not ignored; if they are, the request does not match.
  Result<bool> Match(const ExpressionInput& input, const ExpressionObject* params = nullptr) const;

 private:
  Result<bool> Evaluate(const ExpressionInput& input, const ExpressionObject* params) const;

  Owner owner_;
  std::vector<k8s::CompiledExpression> conditions_;
};

}  // namespace keelson::apiserver
