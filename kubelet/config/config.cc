#include "kubelet/config/config.h"

#include "kubelet/config/document.h"
#include "lib/api/patch/patch.h"
#include "lib/base/file.h"
#include "lib/component/document.h"

namespace keelson::kubelet {

namespace json = boost::json;

namespace {

constexpr std::string_view kDropInSuffix = ".conf";

Result<json::object> ReadDocument(const std::string& path, std::vector<std::string>& problems) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  auto document = ParseDocument(text, problems);
  if (!document) return document.error().Wrap("failed to decode");
  return document;
}

bool IsSet(const json::object& document, const char* name) {
  const json::value* found = document.if_contains(name);
  return found && !found->is_null();
}

// Defaults that hang on other fields.
void SetDependentDefaults(const json::object& document, KubeletConfig& config) {
  if (IsSet(document, "nodeStatusUpdateFrequency") && !IsSet(document, "nodeStatusReportFrequency")) {
    config.node_status_report_frequency = config.node_status_update_frequency;
  }
  if (!IsSet(document, "serializeImagePulls") && config.max_parallel_image_pulls > 1) {
    config.serialize_image_pulls = false;
  }
  if (config.pod_pids_limit < 0) config.pod_pids_limit = -1;
  if (config.merge_default_eviction_settings) {
    config.eviction_hard.merge(KubeletConfig::DefaultEvictionHard());
  }
}

Result<KubeletConfig> ToConfig(const json::object& document, std::vector<std::string> problems) {
  KubeletConfig config;
  if (auto filled = FillConfig(document, config, problems); !filled) {
    return filled.error().Wrap("failed to decode");
  }
  KEELSON_RETURN_IF_ERROR(component::TellProblems({.strict = std::move(problems)}));
  SetDependentDefaults(document, config);
  return config;
}

}  // namespace

Result<KubeletConfig> ParseKubeletConfig(const std::string& yaml) {
  std::vector<std::string> problems;
  KEELSON_ASSIGN_OR_RETURN(json::object document, ParseDocument(yaml, problems));
  return ToConfig(document, std::move(problems));
}

Result<KubeletConfig> LoadKubeletConfig(const std::string& main_file, const std::string& directory) {
  std::vector<std::string> problems;
  json::object merged;
  if (!main_file.empty()) {
    auto document = ReadDocument(main_file, problems);
    if (!document) {
      return document.error().Wrap("failed to load kubelet config file, path: " + main_file + ", error");
    }
    merged = std::move(*document);
  }
  if (!directory.empty()) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(directory));
    for (const std::string& name : names) {
      if (name.size() <= kDropInSuffix.size() ||
          name.compare(name.size() - kDropInSuffix.size(), kDropInSuffix.size(), kDropInSuffix) != 0) {
        continue;
      }
      auto document = ReadDocument(directory + "/" + name, problems);
      if (!document) {
        return document.error().Wrap("failed to load kubelet dropin file, path: " + directory + "/" + name +
                                     ", error");
      }
      merged = api::ApplyMergePatch(std::move(merged), std::move(*document)).get_object();
    }
  }
  return ToConfig(merged, std::move(problems));
}

std::string ConfigzJson(const KubeletConfig& config) {
  json::object document = ToDocument(config);
  document.erase("kind");  // as upstream, whose object has lost its type by then
  document.erase("apiVersion");
  return json::serialize(json::object{{"kubeletconfig", std::move(document)}});
}

}  // namespace keelson::kubelet
