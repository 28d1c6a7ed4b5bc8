#include "controlplane/registry/custom_scale.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "lib/api/codec/custom_object.h"
#include "lib/k8s/schema/json_path.h"

namespace keelson::registry {
namespace {

namespace json = boost::json;

// .spec.replicas -> spec, replicas. Validation allows names only.
std::vector<std::string> Steps(std::string_view path) {
  std::vector<std::string> steps;
  if (path.starts_with('.')) path.remove_prefix(1);
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    steps.emplace_back(path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return steps;
}

const char* GoType(const json::value& value) {
  if (value.is_null()) return "<nil>";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_double()) return "float64";
  if (value.is_array()) return "[]interface {}";
  return value.is_object() ? "map[string]interface {}" : "int64";
}

Error WrongType(const std::vector<std::string>& steps, size_t count, const json::value& value,
                std::string_view expected) {
  const std::vector<std::string> taken(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(count));
  return Error(Code::kInternal,
               fmt::format(".{} accessor error: {} is of the type {}, expected {}", fmt::join(taken, "."),
                           k8s::GoText(value), GoType(value), expected));
}

// The value at a path, as upstream's unstructured.NestedFieldNoCopy() finds it; null: it is absent.
Result<const json::value*> Find(const json::object& content, const std::vector<std::string>& steps) {
  const json::object* at = &content;
  const json::value* value = nullptr;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (value && value->is_null()) return nullptr;
    if (!at) return WrongType(steps, i + 1, *value, "map[string]interface{}");
    value = at->if_contains(steps[i]);
    if (!value) return nullptr;
    at = value->if_object();
  }
  return value;
}

Result<std::optional<int64_t>> NumberAt(const json::object& content, std::string_view path) {
  const std::vector<std::string> steps = Steps(path);
  KEELSON_ASSIGN_OR_RETURN(const json::value* value, Find(content, steps));
  if (!value) return std::optional<int64_t>();
  if (!value->is_int64()) return WrongType(steps, steps.size(), *value, "int64");
  return std::optional<int64_t>(value->get_int64());
}

Result<std::string> TextAt(const json::object& content, std::string_view path) {
  const std::vector<std::string> steps = Steps(path);
  KEELSON_ASSIGN_OR_RETURN(const json::value* value, Find(content, steps));
  if (!value) return std::string();
  if (!value->is_string()) return WrongType(steps, steps.size(), *value, "string");
  return std::string(value->get_string());
}

void CheckNumber(const json::object& content, const std::string& path, k8s::FieldErrors& errors) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const k8s::Path field(path);
  const Result<std::optional<int64_t>> number = NumberAt(content, path);
  if (!number) {
    errors.push_back(k8s::Invalid(field, int64_t{0}, number.error().message()));
  } else if (number->value_or(0) < 0) {
    errors.push_back(k8s::Invalid(field, **number, "should be a non-negative integer"));
  } else if (number->value_or(0) > kMost) {
    errors.push_back(k8s::Invalid(field, **number, fmt::format("should be less than or equal to {}", kMost)));
  }
}

Result<apiextensions::Version::Scale> PathsOf(const apiextensions::CustomRow& row) {
  std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row);
  if (version && version->scale) return *version->scale;
  return Error(Code::kNotFound, "the server could not find the requested resource").WithDetails({});
}

}  // namespace

Result<Scaled> ReadCustomScale(const apiextensions::CustomRow& row, const api::Message& parent) {
  KEELSON_ASSIGN_OR_RETURN(apiextensions::Version::Scale paths, PathsOf(row));
  KEELSON_ASSIGN_OR_RETURN(json::object content, api::ContentOf(parent));
  KEELSON_ASSIGN_OR_RETURN(std::optional<int64_t> wanted, NumberAt(content, paths.spec_path));
  KEELSON_ASSIGN_OR_RETURN(std::optional<int64_t> present, NumberAt(content, paths.status_path));
  Scaled scaled{static_cast<int32_t>(wanted.value_or(0)), static_cast<int32_t>(present.value_or(0)), ""};
  if (!wanted) scaled.missing = paths.spec_path;
  if (paths.selector_path.empty()) return scaled;
  KEELSON_ASSIGN_OR_RETURN(scaled.selector, TextAt(content, paths.selector_path));
  return scaled;
}

k8s::FieldErrors CheckCustomScale(const apiextensions::CustomRow& row, const api::Message& object,
                                  bool status_only) {
  k8s::FieldErrors errors;
  std::shared_ptr<const apiextensions::Version> version = row.owner->VersionOf(row);
  if (!version || !version->scale) return errors;
  Result<json::object> content = api::ContentOf(object);
  if (!content) return errors;  // too deep, which the schema's validation reports
  const apiextensions::Version::Scale& paths = *version->scale;
  if (!status_only) CheckNumber(*content, paths.spec_path, errors);
  CheckNumber(*content, paths.status_path, errors);
  if (paths.selector_path.empty()) return errors;
  if (Result<std::string> selector = TextAt(*content, paths.selector_path); !selector) {
    errors.push_back(k8s::Invalid(k8s::Path(paths.selector_path), "", selector.error().message()));
  }
  return errors;
}

Result<> SetCustomReplicas(const apiextensions::CustomRow& row, api::Message& parent, int32_t replicas) {
  KEELSON_ASSIGN_OR_RETURN(apiextensions::Version::Scale paths, PathsOf(row));
  KEELSON_ASSIGN_OR_RETURN(json::object content, api::ContentOf(parent));
  const std::vector<std::string> steps = Steps(paths.spec_path);
  json::object* at = &content;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    json::value& next = (*at)[steps[i]];
    if (!next.is_object()) next = json::object();
    at = &next.get_object();
  }
  (*at)[steps.back()] = replicas;
  api::SetContent(parent, content);
  return {};
}

}  // namespace keelson::registry
