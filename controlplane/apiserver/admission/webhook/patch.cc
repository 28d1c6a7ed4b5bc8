#include "controlplane/apiserver/admission/webhook/patch.h"

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/apiserver/admission/webhook/dispatch.h"
#include "controlplane/registry/managed_fields.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/patch/patch.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/text/json_problem.h"

namespace keelson::apiserver::webhook {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 1000;

Result<json::value> Parse(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return Error(Code::kBadRequest, error.message());
  return value;
}

void KeepManagedFields(const api::Message& before, api::Message& after, AdmissionNotes* notes) {
  if (!api::HasObjectMeta(before.GetDescriptor())) return;
  const auto& fields = api::Meta(after).managed_fields();
  const auto& known = api::Meta(before).managed_fields();
  std::string problem;
  if (Result<registry::ManagedFields> decoded = registry::ManagedFields::Decode(fields); !decoded) {
    problem = decoded.error().message();
  } else if (k8s::FieldErrors errors = registry::ValidateManagedFields(fields); !errors.empty()) {
    problem = errors.front().ToString();
  }
  if (problem.empty()) return;
  *api::MutableMeta(after).mutable_managed_fields() = known;
  if (!notes) return;
  notes->told.push_back(
      fmt::format(".metadata.managedFields was in an invalid state after admission; this could be caused by "
                  "an outdated mutating admission controller; please fix your requests: {}",
                  problem));
}

}  // namespace

Result<json::value> ParsePatch(std::string_view patch) {
  Result<json::value> parsed = Parse(patch);
  if (!parsed) {
    const std::string problem = k8s::JsonProblem(patch);
    return Error(Code::kBadRequest, problem.empty() ? parsed.error().message() : problem);
  }
  if (!parsed->is_array()) {
    return Error(Code::kBadRequest, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  }
  return parsed;
}

Result<std::unique_ptr<api::Message>> ApplyPatch(const api::Message& object, std::string_view json,
                                                 const json::value& patch, const api::ResourceInfo& row,
                                                 AdmissionNotes* notes) {
  Result<json::value> document = Parse(json);
  if (!document) return InternalError(document.error().message());
  Result<json::value> patched = api::ApplyJsonPatch(std::move(*document), patch);
  if (!patched) return InternalError(patched.error().message());
  std::unique_ptr<api::Message> out(object.New());
  api::TypeMeta type;
  if (Result<> decoded = api::DecodeJson(json::serialize(*patched), *out, nullptr, &type); !decoded) {
    return InternalError(decoded.error().message());
  }
  const api::GroupVersionKind gvk = row.Gvk();
  if (type.kind != gvk.kind || type.api_version != gvk.ApiVersion()) {
    return InternalError(fmt::format(
        "unable to convert {}, Kind={} to {}, Kind={}: a webhook may not change the kind of an object",
        type.api_version, type.kind, gvk.ApiVersion(), gvk.kind));
  }
  KeepManagedFields(object, *out, notes);
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(row)) {
    // The schema applies to what the webhook has added and taken away.
    if (Result<std::vector<std::string>> coerced = apiextensions::Coerce(*custom, *out); !coerced) {
      return InternalError(coerced.error().message());
    }
  } else {
    k8s::SetDefaults(*out);
  }
  return out;
}

}  // namespace keelson::apiserver::webhook
