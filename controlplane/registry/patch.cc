// Patches work on the JSON form, so that they see fields as users spell them.
#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/registry/impl.h"
#include "lib/api/codec.h"
#include "lib/api/meta.h"
#include "lib/api/patch.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

namespace json = boost::json;

Result<json::value> Parse(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 1000;
  json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
  if (error) return Error(Code::kBadRequest, fmt::format("error decoding patch: {}", error.message()));
  return value;
}

// What a patch makes must still be an object of the kind.
Error NotAnObject(std::string_view patch, std::string_view why) {
  std::string message = fmt::format(" \"\" is invalid: patch: Invalid value: {}: {}", k8s::Quote(patch), why);
  ErrorDetails details;
  details.causes.push_back(
      {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", k8s::Quote(patch), why), "patch"});
  return Error(Code::kInvalid, std::move(message)).WithDetails(std::move(details));
}

Result<json::value> Apply(json::value document, const json::value& patch, PatchType type,
                          const Message& current) {
  switch (type) {
    case PatchType::kJson:
      return api::ApplyJsonPatch(std::move(document), patch);
    case PatchType::kMerge:
      if (!patch.is_object()) return Error(Code::kBadRequest, "a merge patch must be an object");
      return api::ApplyMergePatch(std::move(document), patch);
    case PatchType::kStrategicMerge:
      if (!patch.is_object()) return Error(Code::kBadRequest, "a strategic merge patch must be an object");
      return api::ApplyStrategicMergePatch(std::move(document), patch,
                                           api::TypeViewOf(current.GetDescriptor()));
  }
  return Error(Code::kUnsupportedMediaType, "unknown kind of patch");
}

}  // namespace

Result<std::unique_ptr<Message>> ApplyPatch(const Message& current, const api::GroupVersionKind& gvk,
                                            PatchType type, std::string_view patch,
                                            FieldValidation validation, std::vector<std::string>& warnings) {
  ASSIGN_OR_RETURN(json::value parsed, Parse(patch));
  std::string text = api::EncodeJson(current, gvk);
  ASSIGN_OR_RETURN(json::value document, Parse(text));
  ASSIGN_OR_RETURN(document, Apply(std::move(document), parsed, type, current));
  text = json::serialize(document);
  std::unique_ptr<Message> object(current.New());
  api::DecodeReport report;
  api::TypeMeta type_meta;
  Result<> decoded = api::DecodeJson(text, *object, &report, &type_meta);
  if (!decoded) return NotAnObject(patch, decoded.error().message());
  if (type_meta.kind != gvk.kind || type_meta.api_version != gvk.ApiVersion())
    return Error(Code::kBadRequest, "the apiVersion and kind of an object cannot be patched");
  if (report.problems.empty() || validation == FieldValidation::kIgnore) return object;
  if (validation == FieldValidation::kWarn) {
    warnings = std::move(report.problems);
    return object;
  }
  return NotAnObject(patch, fmt::format("strict decoding error: {}", fmt::join(report.problems, ", ")));
}

}  // namespace keelson::registry
