// AdmissionReview (admission.k8s.io v1 and v1beta1): the question for a webhook, and its answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/admission.h"

namespace keelson::apiserver::webhook {

struct Question {
  std::string version;  // v1 or v1beta1
  std::string uid, json;
};

// `row`: in whose version the JSON of the objects is, and which the webhook has asked for. Empty: no object.
Question MakeQuestion(const AdmissionRequest& request, std::string_view version, const api::ResourceInfo& row,
                      std::string_view object, std::string_view old_object);

struct Answer {
  bool allowed = false;
  std::optional<metav1::Status> status;
  std::string patch;  // JSON patch; empty: none
  std::string patch_type;
  std::map<std::string, std::string> audit_annotations;
  std::vector<std::string> warnings;
};

// Checks a webhook's response. Errors are of two kinds: kBadRequest: it is no AdmissionReview; kInvalid: the
// review breaks a rule (another UID, a patch from a validating webhook).
Result<Answer> ReadAnswer(std::string_view json, const Question& question, bool mutating);

}  // namespace keelson::apiserver::webhook
