#include "kubelet/config/document.h"

#include <algorithm>

#include "kubelet/config/value.h"
#include "lib/component/logging_options.h"
#include "lib/k8s/text/yaml.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

constexpr char kKind[] = "KubeletConfiguration", kVersion[] = "kubelet.config.k8s.io/v1beta1";

// What is checked elsewhere, or is no field of the configuration.
constexpr std::string_view kNoFields[] = {"logging.vmodule", "logging.options", "kind", "apiVersion"};

bool IsParent(std::string_view path) {
  return std::any_of(Fields().begin(), Fields().end(), [&](const Field& field) {
    return field.path.size() > path.size() && field.path[path.size()] == '.' &&
           field.path.substr(0, path.size()) == path;
  });
}

Result<> Fill(const json::object& from, const std::string& prefix, KubeletConfig& config,
              std::vector<std::string>& problems) {
  for (const auto& member : from) {
    const std::string path = prefix + std::string(member.key());
    if (const Field* field = FindField(path)) {
      RETURN_IF_ERROR(ReadField(*field, member.value(), config));
    } else if (IsParent(path)) {
      if (member.value().is_null()) continue;
      if (!member.value().is_object())
        return Error(Code::kBadRequest,
                     "json: cannot unmarshal value into Go struct field KubeletConfiguration." + path +
                         " of type struct");
      RETURN_IF_ERROR(Fill(member.value().get_object(), path + ".", config, problems));
    } else if (std::find(std::begin(kNoFields), std::end(kNoFields), path) == std::end(kNoFields)) {
      problems.push_back("unknown field \"" + path + "\"");
    }
  }
  return {};
}

std::string TextOf(const json::object& document, const char* name) {
  const json::value* found = document.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

}  // namespace

Result<json::object> ParseDocument(const std::string& text, std::vector<std::string>& problems) {
  ASSIGN_OR_RETURN(std::string as_json, k8s::YamlToJson(text, &problems));
  json::error_code failed;
  json::value document = json::parse(as_json, failed);
  if (failed || !document.is_object())
    return Error(Code::kBadRequest, "couldn't get version/kind; json parse error: not a mapping");
  std::string kind = TextOf(document.get_object(), "kind");
  std::string version = TextOf(document.get_object(), "apiVersion");
  if (kind.empty()) return Error(Code::kBadRequest, "Object 'Kind' is missing in '" + as_json + "'");
  if (kind != kKind || version != kVersion)
    return Error(Code::kBadRequest,
                 "no kind \"" + kind + "\" is registered for version \"" + version + "\" in scheme");
  return std::move(document.get_object());
}

Result<> FillConfig(const json::object& document, KubeletConfig& config, std::vector<std::string>& problems) {
  RETURN_IF_ERROR(Fill(document, "", config, problems));
  const json::value* logging = document.if_contains("logging");
  if (logging && logging->is_object())
    RETURN_IF_ERROR(k8s::CheckLoggingOptions(logging->get_object(), problems));
  return {};
}

json::object ToDocument(const KubeletConfig& config) {
  json::object out = {{"kind", kKind}, {"apiVersion", kVersion}};
  for (const Field& field : Fields()) {
    json::value value = PrintField(field, config);
    if (value.is_null()) continue;
    json::object* parent = &out;
    std::string_view rest = field.path;
    for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      json::value& child = (*parent)[rest.substr(0, dot)];
      if (child.is_null()) child = json::object();
      parent = &child.get_object();
      rest.remove_prefix(dot + 1);
    }
    (*parent)[rest] = std::move(value);
  }
  return out;
}

}  // namespace keelson::kubelet
