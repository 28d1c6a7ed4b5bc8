// The rules of webhook configurations and admission policies: which requests they are about.
#pragma once

#include <google/protobuf/repeated_field.h>

#include "controlplane/apiserver/admission/admission.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"

namespace keelson::apiserver {

namespace admissionregistrationv1 = api::admissionregistration::v1;

// Whether the rule matches the request, if its resource were that of `row`.
bool RuleMatches(const admissionregistrationv1::RuleWithOperations& rule, const AdmissionRequest& request,
                 const api::ResourceInfo& row);

// The row in whose group and version the rules want to see the request: the request's own row if a rule
// matches it, otherwise, with `equivalent` (matchPolicy), the first one by order of rules that shows the same
// objects. Null: no rule matches.
const api::ResourceInfo* MatchRules(
    const google::protobuf::RepeatedPtrField<admissionregistrationv1::RuleWithOperations>& rules,
    bool equivalent, const AdmissionRequest& request);

// The same for rules that may name objects. `row` of the result as above.
const api::ResourceInfo* MatchRules(
    const google::protobuf::RepeatedPtrField<admissionregistrationv1::NamedRuleWithOperations>& rules,
    bool equivalent, const AdmissionRequest& request);

// Other rows that show the objects of `row`, with the same subresource.
std::vector<const api::ResourceInfo*> EquivalentRows(const api::ResourceInfo& row);

// Whether the request is about webhook configurations or admission policies, which no webhook and no policy
// judges: otherwise one could make itself irremovable.
bool IsAdmissionConfiguration(const AdmissionRequest& request);

}  // namespace keelson::apiserver
