#include "controlplane/apiserver/endpoints/body.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <boost/json/parse.hpp>

#include "controlplane/apiextensions/custom_objects.h"
#include "controlplane/apiserver/endpoints/list_options.h"
#include "controlplane/apiserver/request/yaml.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

std::string Summary(std::string_view body) {
  constexpr size_t kMax = 30;
  if (body.empty()) return "<empty>";
  if (body.front() == '{') {
    return body.size() > kMax ? std::string(body.substr(0, kMax)) + " ..." : std::string(body);
  }
  const std::string out = Hex(body.substr(0, kMax));
  return body.size() > kMax ? out + " ..." : out;
}

// The kind in the body against the one that the resource takes.
Result<> CheckType(const api::TypeMeta& type, const api::GroupVersionKind& want) {
  auto [group, version] = api::SplitApiVersion(type.api_version);
  if (!type.kind.empty() && type.kind != want.kind) {
    std::string why =
        api::FindMessage(group, version, type.kind)
            ? fmt::format("converting ({}.{}) to ({}.{}): unknown conversion", version, type.kind,
                          want.version, want.kind)
            : fmt::format("no kind \"{}\" is registered for version \"{}\" in scheme \"keelson\"", type.kind,
                          type.api_version);
    return Error(Code::kBadRequest, fmt::format("{} in version \"{}\" cannot be handled as a {}: {}",
                                                type.kind, version, want.kind, why));
  }
  if (!type.api_version.empty() && (group != want.group || version != want.version)) {
    return Error(Code::kBadRequest,
                 fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                             type.api_version, want.ApiVersion()));
  }
  return {};
}

Error CannotBe(const api::GroupVersionKind& want, std::string_view why) {
  return Error(Code::kBadRequest, fmt::format("{} in version \"{}\" cannot be handled as a {}: {}", want.kind,
                                              want.version, want.kind, why));
}

// "managedFields":[] asks to reset them. A message cannot represent an empty list; one empty entry means the
// same.
void KeepResetOfManagedFields(std::string_view text, api::Message& object) {
  namespace json = boost::json;
  if (text.find("\"managedFields\"") == text.npos || !api::HasObjectMeta(object.GetDescriptor()) ||
      api::Meta(object).managed_fields_size() > 0) {
    return;
  }
  boost::system::error_code error;
  json::parse_options deep;
  deep.max_depth = 1000;
  const json::value document = json::parse(json::string_view(text.data(), text.size()), error, {}, deep);
  const json::object* root = error ? nullptr : document.if_object();
  const json::value* metadata = root ? root->if_contains("metadata") : nullptr;
  const json::object* fields = metadata ? metadata->if_object() : nullptr;
  const json::value* managed = fields ? fields->if_contains("managedFields") : nullptr;
  if (managed && managed->is_array()) api::MutableMeta(object).add_managed_fields();
}

Error Unrecognized(const api::GroupVersionKind& want, std::string_view why, std::string_view body) {
  return Error(Code::kBadRequest,
               fmt::format("the object provided is unrecognized (must be of type {}): {} ({})", want.kind,
                           why, Summary(body)));
}

// Upstream has no Go type for a custom object that would fill in what is missing. A wrong kind is for validation.
Result<> CheckCustomType(const api::TypeMeta& type, const api::GroupVersionKind& want,
                         std::string_view json) {
  if (type.kind.empty()) {
    return Unrecognized(want, fmt::format("Object 'Kind' is missing in '{}'", json), json);
  }
  if (type.api_version == want.ApiVersion()) return {};
  return Error(Code::kBadRequest,
               fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                           type.api_version, want.ApiVersion()));
}

// Adds duplicate and unknown fields to `problems`.
Result<api::TypeMeta> DecodeJsonBody(std::string_view json, const api::GroupVersionKind& want,
                                     api::Message& object, std::vector<std::string>& problems) {
  Result<api::TypeMeta> type = api::PeekTypeMeta(json);
  if (!type) return Unrecognized(want, type.error().message(), json);
  KEELSON_RETURN_IF_ERROR(api::IsCustom(object.GetDescriptor()) ? CheckCustomType(*type, want, json)
                                                                : CheckType(*type, want));
  api::DecodeReport report;
  Result<> decoded = api::DecodeJson(json, object, &report);
  if (!decoded) return CannotBe(want, decoded.error().message());
  KeepResetOfManagedFields(json, object);
  for (std::string& problem : report.problems) problems.push_back(std::move(problem));
  return type;
}

Result<api::TypeMeta> DecodeInto(const Context& context, const api::GroupVersionKind& want,
                                 api::Message& object, std::vector<std::string>& problems) {
  const std::string& body = context.request->body;
  KEELSON_ASSIGN_OR_RETURN(Encoding encoding, BodyEncoding(*context.request));
  if (encoding == Encoding::kJson) return DecodeJsonBody(body, want, object, problems);
  if (encoding == Encoding::kYaml) {
    KEELSON_ASSIGN_OR_RETURN(std::string json, YamlToJson(body, &problems));
    return DecodeJsonBody(json, want, object, problems);
  }
  api::TypeMeta type;
  Result<> decoded = api::DecodeProtobuf(body, object, &type);
  if (!decoded) return Unrecognized(want, decoded.error().message(), body);
  KEELSON_RETURN_IF_ERROR(CheckType(type, want));
  return type;
}

Error NoProtobuf() {
  return Error(
      Code::kUnsupportedMediaType,
      "the body of the request was in an unknown format - accepted media types include: application/json, "
      "application/yaml");
}

// Prunes an object of a custom resource. Its unknown fields follow those of its metadata, and duplicate ones come first.
Result<> FollowSchema(const Context& context, api::Message& object, std::vector<std::string>& problems) {
  const api::ResourceInfo& row = *context.resource;
  Result<std::vector<std::string>> unknown = apiextensions::Coerce(*apiextensions::CustomOf(row), object);
  if (!unknown) return CannotBe(row.Gvk(), unknown.error().message());
  std::stable_partition(problems.begin(), problems.end(),
                        [](const std::string& problem) { return !problem.starts_with("unknown field "); });
  problems.insert(problems.end(), std::make_move_iterator(unknown->begin()),
                  std::make_move_iterator(unknown->end()));
  return {};
}

// What field validation makes of duplicate and unknown fields.
Result<> Judge(Context& context, registry::FieldValidation validation,
               const std::vector<std::string>& problems) {
  if (problems.empty() || validation == registry::FieldValidation::kIgnore) return {};
  if (validation == registry::FieldValidation::kStrict) {
    return CannotBe(context.resource->Gvk(), "strict decoding error: " + Join(problems, ", "));
  }
  for (const std::string& problem : problems) WarnOf(context, problem);
  return {};
}

}  // namespace

void WarnOf(Context& context, std::string_view problem) {
  constexpr std::string_view kYaml = "yaml: unmarshal errors:\n";
  size_t yaml = problem.find(kYaml);
  if (yaml == problem.npos) {
    context.warnings.emplace_back(problem);
    return;
  }
  for (std::string_view rest = problem.substr(yaml + kYaml.size()); !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    context.warnings.emplace_back(line);
  }
}

Result<std::unique_ptr<api::Message>> DecodeObject(Context& context, registry::FieldValidation validation) {
  std::unique_ptr<api::Message> object = api::NewObject(context.resource->descriptor());
  const bool is_custom = context.resource->IsCustom();
  if (is_custom) {
    KEELSON_ASSIGN_OR_RETURN(Encoding encoding, BodyEncoding(*context.request));
    if (encoding == Encoding::kProtobuf) return NoProtobuf();
  }
  std::vector<std::string> problems;
  const api::GroupVersionKind want = context.resource->Gvk();
  KEELSON_ASSIGN_OR_RETURN(const api::TypeMeta type, DecodeInto(context, want, *object, problems));
  if (is_custom) KEELSON_RETURN_IF_ERROR(FollowSchema(context, *object, problems));
  KEELSON_RETURN_IF_ERROR(Judge(context, validation, problems));
  if (is_custom && type.kind != want.kind) {
    return k8s::ToInvalid(want, api::Meta(*object).name(),
                          {k8s::Invalid(k8s::Path("kind"), type.kind, "must be " + want.kind)});
  }
  return object;
}

Result<metav1::DeleteOptions> DecodeDeleteOptions(Context& context) {
  metav1::DeleteOptions options;
  if (!context.request->body.empty()) {
    // Clients send it as meta.k8s.io/v1, v1, or the resource's own version; all are equivalent.
    const std::string& body = context.request->body;
    KEELSON_ASSIGN_OR_RETURN(Encoding encoding, BodyEncoding(*context.request));
    if (encoding == Encoding::kProtobuf) {
      KEELSON_RETURN_IF_ERROR(api::DecodeProtobuf(body, options));
      return options;
    }
    std::string json = body;
    if (encoding == Encoding::kYaml) {
      KEELSON_ASSIGN_OR_RETURN(json, YamlToJson(body));
    }
    api::TypeMeta type;
    Result<> decoded = api::DecodeJson(json, options, nullptr, &type);
    if (!decoded) return Error(Code::kBadRequest, decoded.error().message());
    if (!type.kind.empty() && type.kind != "DeleteOptions") {
      return Error(Code::kBadRequest, "decoded object cannot be converted to DeleteOptions");
    }
    return options;
  }
  const http::Query& query = context.query();
  KEELSON_ASSIGN_OR_RETURN(std::optional<int64_t> grace, IntParameter(query, "gracePeriodSeconds"));
  if (grace) options.set_grace_period_seconds(*grace);
  if (query.Has("propagationPolicy")) {
    options.set_propagation_policy(std::string(query.Get("propagationPolicy")));
  }
  if (query.Has("orphanDependents")) options.set_orphan_dependents(IsSet(query, "orphanDependents"));
  if (IsSet(query, "ignoreStoreReadErrorWithClusterBreakingPotential")) {
    options.set_ignore_store_read_error_with_cluster_breaking_potential(true);
  }
  for (std::string_view value : query.All("dryRun")) options.add_dry_run(std::string(value));
  return options;
}

}  // namespace keelson::apiserver
