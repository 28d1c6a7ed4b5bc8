// The matchConditions of a webhook: CEL expressions over the request, all of which must be true for a call.
#pragma once

#include <string>
#include <vector>

#include "controlplane/apiserver/admission/admission.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"

namespace keelson::apiserver::webhook {

class MatchConditions {
 public:
  MatchConditions() = default;
  explicit MatchConditions(
      const google::protobuf::RepeatedPtrField<api::admissionregistration::v1::MatchCondition>& conditions);

  bool empty() const { return names_.empty(); }
  // Whether all conditions are true. An error: none is false, and one could not be evaluated.
  // This server evaluates no CEL yet, so that is the result whenever there are conditions.
  Result<bool> Match(const AdmissionRequest& request) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace keelson::apiserver::webhook
