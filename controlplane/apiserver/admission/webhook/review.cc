#include "controlplane/apiserver/admission/webhook/review.h"

#include <fmt/format.h>

#include "controlplane/apiserver/admission/expressions/request_message.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/admission_v1.pb.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/json_problem.h"

namespace keelson::apiserver::webhook {
namespace {

using api::admission::v1::AdmissionReview;

constexpr std::string_view kGroup = "admission.k8s.io", kKind = "AdmissionReview";

Error Invalid(std::string message) { return Error(Code::kInvalid, std::move(message)); }

// "admission.k8s.io/v1, Kind=AdmissionReview"
std::string PrintKind(std::string_view api_version, std::string_view kind) {
  return fmt::format("{}, Kind={}", api_version.empty() ? "/" : api_version, kind);
}

Result<> CheckPatch(const api::admission::v1::AdmissionResponse& response, bool mutating) {
  const bool patched = !response.patch().empty();
  if (!mutating) {
    if (patched) return Invalid("validating webhook may not return response.patch");
    if (response.has_patch_type()) return Invalid("validating webhook may not return response.patchType");
    return {};
  }
  if (patched && !response.has_patch_type()) {
    return Invalid("webhook returned response.patch but not response.patchType");
  }
  if (!patched && response.has_patch_type()) {
    return Invalid("webhook returned response.patchType but not response.patch");
  }
  if (response.has_patch_type() && response.patch_type().empty()) {
    return Invalid("webhook returned invalid response.patchType of \"\"");
  }
  return {};
}

}  // namespace

Question MakeQuestion(const AdmissionRequest& request, std::string_view version, const api::ResourceInfo& row,
                      std::string_view object, std::string_view old_object) {
  AdmissionReview review;
  api::admission::v1::AdmissionRequest& out = *review.mutable_request();
  const std::string uid = api::NewUid();
  out.set_uid(uid);
  FillRequestMessage(request, row, out);
  if (!object.empty()) out.mutable_object()->set_raw(std::string(object));
  if (!old_object.empty()) out.mutable_old_object()->set_raw(std::string(old_object));
  return {std::string(version), uid,
          api::EncodeJson(review, {std::string(kGroup), std::string(version), std::string(kKind)})};
}

Result<Answer> ReadAnswer(std::string_view json, const Question& question, bool mutating) {
  AdmissionReview review;
  api::TypeMeta type;
  if (Result<> decoded = api::DecodeJson(json, review, nullptr, &type); !decoded) {
    const std::string problem = k8s::JsonObjectProblem(json);
    if (problem.empty()) return Error(Code::kBadRequest, decoded.error().message());
    return Error(Code::kBadRequest, "couldn't get version/kind; json parse error: " + problem);
  }
  const std::string expected = fmt::format("{}/{}", kGroup, question.version);
  const bool untyped = type.api_version.empty() && type.kind.empty();
  if (!untyped && (type.kind != kKind || !type.api_version.starts_with(std::string(kGroup) + "/"))) {
    return Error(Code::kBadRequest,
                 fmt::format("no kind \"{}\" is registered for version \"{}\"", type.kind, type.api_version));
  }
  if (!review.has_response()) return Invalid("webhook response was absent");
  const api::admission::v1::AdmissionResponse& response = review.response();
  Answer answer;
  if (question.version == "v1") {
    if (response.uid() != question.uid) {
      return Invalid(fmt::format("expected response.uid={}, got {}", k8s::Quote(question.uid),
                                 k8s::Quote(response.uid())));
    }
    if (type.kind != kKind || type.api_version != expected) {
      return Invalid(fmt::format("expected webhook response of {}, got {}", PrintKind(expected, kKind),
                                 PrintKind(type.api_version, type.kind)));
    }
    KEELSON_RETURN_IF_ERROR(CheckPatch(response, mutating));
    answer.patch_type = response.patch_type();
  } else if (mutating && !response.patch().empty()) {
    answer.patch_type = "JSONPatch";  // v1beta1 has no other
  }
  answer.allowed = response.allowed();
  if (response.has_status()) answer.status = response.status();
  if (mutating) answer.patch = response.patch();
  answer.audit_annotations = {response.audit_annotations().begin(), response.audit_annotations().end()};
  answer.warnings = {response.warnings().begin(), response.warnings().end()};
  return answer;
}

}  // namespace keelson::apiserver::webhook
