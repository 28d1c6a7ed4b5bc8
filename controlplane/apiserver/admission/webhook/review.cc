#include "controlplane/apiserver/admission/webhook/review.h"

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/admission_v1.pb.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/text/json_problem.h"

namespace keelson::apiserver::webhook {
namespace {

using api::admission::v1::AdmissionReview;
using registry::Operation;

constexpr std::string_view kGroup = "admission.k8s.io", kKind = "AdmissionReview";

void SetKind(const api::ResourceInfo& row, metav1::GroupVersionKind& out) {
  out.set_group(std::string(row.kind_group));
  out.set_version(std::string(row.kind_version));
  out.set_kind(std::string(row.kind));
}

void SetResource(const api::ResourceInfo& row, metav1::GroupVersionResource& out) {
  out.set_group(std::string(row.group));
  out.set_version(std::string(row.version));
  out.set_resource(std::string(row.resource.substr(0, row.resource.find('/'))));
}

std::string SubresourceOf(const api::ResourceInfo& row) {
  const size_t slash = row.resource.find('/');
  return slash == std::string_view::npos ? "" : std::string(row.resource.substr(slash + 1));
}

// The name as upstream sends it: empty for the objects of a collection and for names to be generated.
std::string NameOf(const AdmissionRequest& request) {
  if (request.verb == "deletecollection") return "";
  if (!request.name.empty()) return std::string(request.name);
  const bool has_name = request.object && api::HasObjectMeta(request.object->GetDescriptor());
  return has_name ? api::Meta(*request.object).name() : "";
}

template <typename Options>
std::string EncodeOptions(const AdmissionRequest& request, const char* kind) {
  Options options;
  if (request.dry_run) options.add_dry_run("All");
  if (!request.options->field_manager.empty()) options.set_field_manager(request.options->field_manager);
  if (!request.options->field_validation.empty()) {
    options.set_field_validation(request.options->field_validation);
  }
  return api::EncodeJson(options, {"meta.k8s.io", "v1", kind});
}

std::string OptionsOf(const AdmissionRequest& request) {
  if (!request.options) return "";
  switch (request.operation) {
    case Operation::kCreate:
      return EncodeOptions<metav1::CreateOptions>(request, "CreateOptions");
    case Operation::kUpdate:
      return EncodeOptions<metav1::UpdateOptions>(request, "UpdateOptions");
    case Operation::kDelete: {
      metav1::DeleteOptions options =
          request.options->deletion ? *request.options->deletion : metav1::DeleteOptions();
      if (request.dry_run && options.dry_run().empty()) options.add_dry_run("All");
      return api::EncodeJson(options, {"meta.k8s.io", "v1", "DeleteOptions"});
    }
    case Operation::kConnect:
      break;
  }
  return "";
}

void SetUser(const User& user, authenticationv1::UserInfo& out) {
  if (!user.name.empty()) out.set_username(user.name);
  if (!user.uid.empty()) out.set_uid(user.uid);
  for (const std::string& group : user.groups) out.add_groups(group);
  for (const auto& [key, values] : user.extra) {
    auto& items = *(*out.mutable_extra())[key].mutable_items();
    for (const std::string& value : values) *items.Add() = value;
  }
}

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
  SetKind(row, *out.mutable_kind());
  SetResource(row, *out.mutable_resource());
  if (std::string sub = SubresourceOf(row); !sub.empty()) {
    out.set_sub_resource(sub);
    out.set_request_sub_resource(sub);
  }
  SetKind(request.info, *out.mutable_request_kind());
  SetResource(request.info, *out.mutable_request_resource());
  const std::string name = NameOf(request);
  if (!name.empty()) out.set_name(name);
  const bool is_namespace = request.info.group.empty() && request.MainResource() == "namespaces";
  const std::string ns = is_namespace ? name : std::string(request.ns);
  if (!ns.empty()) out.set_namespace_(ns);
  out.set_operation(std::string(apiserver::NameOf(request.operation)));
  SetUser(request.user, *out.mutable_user_info());
  if (!object.empty()) out.mutable_object()->set_raw(std::string(object));
  if (!old_object.empty()) out.mutable_old_object()->set_raw(std::string(old_object));
  out.set_dry_run(request.dry_run);
  if (std::string options = OptionsOf(request); !options.empty()) {
    out.mutable_options()->set_raw(std::move(options));
  }
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
