// Internal to lib/k8s/validation/extension: rules that webhook configurations and admission policies share.
#pragma once

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace admissionregistrationv1 = api::admissionregistration::v1;

void CheckRuleWithOperations(const admissionregistrationv1::RuleWithOperations& rule, const Path& path,
                             FieldErrors& errors);
using MatchConditions = google::protobuf::RepeatedPtrField<admissionregistrationv1::MatchCondition>;
void CheckMatchConditions(const MatchConditions& conditions, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
