// Internal to lib/k8s/validation/extension: rules that webhook configurations and admission policies share.
#pragma once

#include <set>
#include <string_view>

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace admissionregistrationv1 = api::admissionregistration::v1;

void CheckRuleWithOperations(const admissionregistrationv1::RuleWithOperations& rule, const Path& path,
                             FieldErrors& errors);
using MatchConditions = google::protobuf::RepeatedPtrField<admissionregistrationv1::MatchCondition>;
// `params`: the conditions are of a policy with parameters. `known`: as ExpressionRules.
void CheckMatchConditions(const MatchConditions& conditions, bool params,
                          const std::set<std::string_view>& known, const Path& path, FieldErrors& errors);
bool SameConditions(const MatchConditions& a, const MatchConditions& b);
void AddExpressions(const MatchConditions& conditions, std::set<std::string_view>& known);

}  // namespace keelson::k8s
