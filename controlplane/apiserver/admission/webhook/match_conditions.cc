#include "controlplane/apiserver/admission/webhook/match_conditions.h"

#include <fmt/format.h>

namespace keelson::apiserver::webhook {

MatchConditions::MatchConditions(
    const google::protobuf::RepeatedPtrField<api::admissionregistration::v1::MatchCondition>& conditions) {
  for (const auto& condition : conditions) names_.push_back(condition.name());
}

Result<bool> MatchConditions::Match(const AdmissionRequest&) const {
  if (names_.empty()) return true;
  return Error(Code::kUnimplemented,
               fmt::format("match condition '{}' is not evaluated: this server has no CEL", names_.front()));
}

}  // namespace keelson::apiserver::webhook
