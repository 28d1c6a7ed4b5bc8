#include "controlplane/registry/custom_scale.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "lib/api/codec/custom_object.h"

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

const json::value* Find(const json::object& content, std::string_view path) {
  const json::object* at = &content;
  const json::value* value = nullptr;
  for (const std::string& step : Steps(path)) {
    value = at ? at->if_contains(step) : nullptr;
    if (!value) return nullptr;
    at = value->if_object();
  }
  return value;
}

Result<std::optional<int32_t>> NumberAt(const json::object& content, std::string_view path) {
  const json::value* value = Find(content, path);
  if (!value || value->is_null()) return std::optional<int32_t>();
  if (!value->is_int64()) {
    return Error(Code::kInternal,
                 fmt::format("{} accessor error: {} is not an int64", path, api::CanonicalJson(*value)));
  }
  return std::optional<int32_t>(static_cast<int32_t>(value->get_int64()));
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
  KEELSON_ASSIGN_OR_RETURN(std::optional<int32_t> wanted, NumberAt(content, paths.spec_path));
  if (!wanted) {
    return Error(Code::kInternal,
                 fmt::format("Internal error occurred: the spec replicas field \"{}\" does not exist",
                             paths.spec_path));
  }
  KEELSON_ASSIGN_OR_RETURN(std::optional<int32_t> present, NumberAt(content, paths.status_path));
  Scaled scaled{*wanted, present.value_or(0), ""};
  if (paths.selector_path.empty()) return scaled;
  if (const json::value* selector = Find(content, paths.selector_path); selector && selector->is_string()) {
    scaled.selector = std::string(selector->get_string());
  }
  return scaled;
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
