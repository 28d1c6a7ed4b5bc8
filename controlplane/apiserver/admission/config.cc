#include "controlplane/apiserver/admission/config.h"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/handlers/yaml.h"
#include "lib/base/file.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

Error Bad(std::string_view what) { return Error(Code::kInvalid, std::string(what)); }

// One object of a configuration. Fields that nobody has asked for are errors, as upstream's strict decoding
// has them: a misspelt exemption or limit must not go unnoticed.
class Reader {
 public:
  static Result<Reader> Of(const json::value& value, std::string where) {
    if (!value.is_object()) return Bad(where + ": not an object");
    return Reader(value.as_object(), std::move(where));
  }
  const json::value* Find(std::string_view key) {
    known_.insert(std::string(key));
    const json::value* value = object_->if_contains(key);
    return value && value->is_null() ? nullptr : value;
  }
  Result<std::string> String(std::string_view key, std::string_view otherwise = "") {
    const json::value* value = Find(key);
    if (!value) return std::string(otherwise);
    if (!value->is_string()) return Bad(fmt::format("{}.{}: not a string", where_, key));
    return std::string(value->as_string());
  }
  Result<int32_t> Int(std::string_view key, int32_t otherwise = 0) {
    const json::value* value = Find(key);
    if (!value) return otherwise;
    if (!value->is_int64() || value->as_int64() > INT32_MAX || value->as_int64() < INT32_MIN)
      return Bad(fmt::format("{}.{}: not a number of 32 bits", where_, key));
    return static_cast<int32_t>(value->as_int64());
  }
  Result<std::vector<std::string>> Strings(std::string_view key) {
    std::vector<std::string> out;
    ASSIGN_OR_RETURN(const json::array* values, Array(key));
    for (size_t i = 0; values && i < values->size(); ++i) {
      if (!(*values)[i].is_string()) return Bad(fmt::format("{}.{}[{}]: not a string", where_, key, i));
      out.emplace_back((*values)[i].as_string());
    }
    return out;
  }
  // null: absent.
  Result<const json::array*> Array(std::string_view key) {
    const json::value* value = Find(key);
    if (!value) return nullptr;
    if (!value->is_array()) return Bad(fmt::format("{}.{}: not a list", where_, key));
    return &value->as_array();
  }
  // Each item of a list of objects.
  template <typename Each>
  Result<> Objects(std::string_view key, const Each& each) {
    ASSIGN_OR_RETURN(const json::array* values, Array(key));
    for (size_t i = 0; values && i < values->size(); ++i) {
      ASSIGN_OR_RETURN(Reader item, Of((*values)[i], fmt::format("{}.{}[{}]", where_, key, i)));
      RETURN_IF_ERROR(each(item));
      RETURN_IF_ERROR(item.Done());
    }
    return {};
  }
  Result<> Kind(std::string_view group, std::string_view kind) {
    ASSIGN_OR_RETURN(std::string version, String("apiVersion"));
    ASSIGN_OR_RETURN(std::string given, String("kind"));
    if (given == kind && version.substr(0, version.find('/')) == group) return {};
    return Bad(fmt::format("{}: no kind \"{}\" is registered for version \"{}\"; expected {} of {}", where_,
                           given, version, kind, group));
  }
  Result<> Done() const {
    for (const auto& field : *object_) {
      if (!known_.count(std::string_view(field.key())))
        return Bad(fmt::format("strict decoding error: unknown field \"{}.{}\"", where_,
                               std::string_view(field.key())));
    }
    return {};
  }
  const std::string& where() const { return where_; }

 private:
  Reader(const json::object& object, std::string where) : object_(&object), where_(std::move(where)) {}
  const json::object* object_;
  std::string where_;
  std::set<std::string, std::less<>> known_;
};

bool IsLevel(std::string_view level) {
  return level == "privileged" || level == "baseline" || level == "restricted";
}

// "latest" or v1.<minor>.
bool IsVersion(std::string_view version) {
  if (version == "latest") return true;
  if (version.substr(0, 3) != "v1." || version.size() < 4 || version.size() > 6) return false;
  const std::string_view digits = version.substr(3);
  if (digits.size() > 1 && digits[0] == '0') return false;
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<> ReadMode(Reader& defaults, const std::string& key, PodSecurityConfig::Mode& mode) {
  ASSIGN_OR_RETURN(mode.level, defaults.String(key, mode.level));
  ASSIGN_OR_RETURN(mode.version, defaults.String(key + "-version", mode.version));
  if (!IsLevel(mode.level)) {
    return Bad(fmt::format("{}.{}: Invalid value: \"{}\": must be one of privileged, baseline, restricted",
                           defaults.where(), key, mode.level));
  }
  if (!IsVersion(mode.version)) {
    return Bad(fmt::format("{}.{}-version: Invalid value: \"{}\": must be \"latest\" or \"v1.x\"",
                           defaults.where(), key, mode.version));
  }
  return {};
}

Result<std::set<std::string, std::less<>>> ReadSet(Reader& from, std::string_view key) {
  ASSIGN_OR_RETURN(std::vector<std::string> values, from.Strings(key));
  std::set<std::string, std::less<>> out;
  for (std::string& value : values) {
    if (value.empty())
      return Bad(fmt::format("{}.{}: Invalid value: \"\": must not be empty", from.where(), key));
    if (!out.insert(value).second)
      return Bad(fmt::format("{}.{}: Duplicate value: \"{}\"", from.where(), key, value));
  }
  return out;
}

Result<> ReadPodSecurity(Reader& from, AdmissionConfig& config) {
  RETURN_IF_ERROR(from.Kind("pod-security.admission.config.k8s.io", "PodSecurityConfiguration"));
  PodSecurityConfig& out = config.pod_security;
  if (const json::value* value = from.Find("defaults")) {
    ASSIGN_OR_RETURN(Reader defaults, Reader::Of(*value, "defaults"));
    RETURN_IF_ERROR(ReadMode(defaults, "enforce", out.enforce));
    RETURN_IF_ERROR(ReadMode(defaults, "audit", out.audit));
    RETURN_IF_ERROR(ReadMode(defaults, "warn", out.warn));
    RETURN_IF_ERROR(defaults.Done());
  }
  if (const json::value* value = from.Find("exemptions")) {
    ASSIGN_OR_RETURN(Reader exemptions, Reader::Of(*value, "exemptions"));
    ASSIGN_OR_RETURN(out.exempt_usernames, ReadSet(exemptions, "usernames"));
    ASSIGN_OR_RETURN(out.exempt_namespaces, ReadSet(exemptions, "namespaces"));
    ASSIGN_OR_RETURN(out.exempt_runtime_classes, ReadSet(exemptions, "runtimeClasses"));
    RETURN_IF_ERROR(exemptions.Done());
  }
  return {};
}

Result<> ReadEventRateLimit(Reader& from, AdmissionConfig& config) {
  RETURN_IF_ERROR(from.Kind("eventratelimit.admission.k8s.io", "Configuration"));
  RETURN_IF_ERROR(from.Objects("limits", [&](Reader& item) -> Result<> {
    EventRateLimitConfig::Limit limit;
    ASSIGN_OR_RETURN(limit.type, item.String("type"));
    ASSIGN_OR_RETURN(limit.qps, item.Int("qps"));
    ASSIGN_OR_RETURN(limit.burst, item.Int("burst"));
    ASSIGN_OR_RETURN(int32_t cache, item.Int("cacheSize"));
    if (limit.type != "Server" && limit.type != "Namespace" && limit.type != "User" &&
        limit.type != "SourceAndObject") {
      return Bad(
          fmt::format("{}.type: Unsupported value: \"{}\": supported values: \"Namespace\", "
                      "\"Server\", \"SourceAndObject\", \"User\"",
                      item.where(), limit.type));
    }
    if (limit.burst <= 0) return Bad(item.where() + ".burst: Invalid value: must be positive");
    if (limit.qps <= 0) return Bad(item.where() + ".qps: Invalid value: must be positive");
    if (cache < 0) return Bad(item.where() + ".cacheSize: Invalid value: must not be negative");
    if (cache > 0) limit.cache_size = cache;
    config.event_rate_limit.limits.push_back(std::move(limit));
    return {};
  }));
  if (config.event_rate_limit.limits.empty()) return Bad("limits: Invalid value: must not be empty");
  return {};
}

Result<> ReadResourceQuota(Reader& from, AdmissionConfig& config) {
  ASSIGN_OR_RETURN(std::string kind, from.String("kind"));
  // Both names have been in use.
  RETURN_IF_ERROR(kind == "Configuration"
                      ? from.Kind("resourcequota.admission.k8s.io", kind)
                      : from.Kind("apiserver.config.k8s.io", "ResourceQuotaConfiguration"));
  return from.Objects("limitedResources", [&](Reader& item) -> Result<> {
    ResourceQuotaConfig::Limited limited;
    ASSIGN_OR_RETURN(limited.group, item.String("apiGroup"));
    ASSIGN_OR_RETURN(limited.resource, item.String("resource"));
    if (limited.resource.empty()) return Bad(item.where() + ".resource: Required value");
    ASSIGN_OR_RETURN(limited.match_contains, item.Strings("matchContains"));
    RETURN_IF_ERROR(item.Objects("matchScopes", [&](Reader& scope) -> Result<> {
      ResourceQuotaConfig::Scope out;
      ASSIGN_OR_RETURN(out.name, scope.String("scopeName"));
      ASSIGN_OR_RETURN(out.op, scope.String("operator"));
      ASSIGN_OR_RETURN(out.values, scope.Strings("values"));
      limited.match_scopes.push_back(std::move(out));
      return {};
    }));
    config.resource_quota.limited.push_back(std::move(limited));
    return {};
  });
}

struct Section {
  std::string_view plugin;
  Result<> (*read)(Reader& from, AdmissionConfig& config);
};
constexpr Section kSections[] = {
    {"PodSecurity", ReadPodSecurity},
    {"EventRateLimit", ReadEventRateLimit},
    {"ResourceQuota", ReadResourceQuota},
};

Result<json::value> ParseYaml(std::string_view yaml) {
  ASSIGN_OR_RETURN(std::string text, YamlToJson(yaml));
  boost::system::error_code failed;
  json::value value = json::parse(text, failed);
  if (failed) return Bad("not a YAML document");
  return value;
}

Result<> ReadPlugin(Reader& item, const std::string& directory, AdmissionConfig& config) {
  ASSIGN_OR_RETURN(std::string name, item.String("name"));
  ASSIGN_OR_RETURN(std::string path, item.String("path"));
  const json::value* inlined = item.Find("configuration");
  const Section* section = nullptr;
  for (const Section& one : kSections) {
    if (one.plugin == name) section = &one;
  }
  if (!section) return Bad(fmt::format("{}: plugin \"{}\" takes no configuration", item.where(), name));
  json::value settings;
  if (inlined) {
    settings = *inlined;
  } else if (!path.empty()) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(path[0] == '/' ? path : directory + "/" + path));
    Result<json::value> parsed = ParseYaml(text);
    if (!parsed) return parsed.error().Wrap(path);
    settings = std::move(*parsed);
  } else {
    return {};
  }
  Result<Reader> reader = Reader::Of(settings, name);
  if (!reader) return reader.error();
  Result<> read = section->read(*reader, config);
  if (read) read = reader->Done();
  return read ? Result<>() : read.error().Wrap(name);
}

Result<> CheckNames(const AdmissionConfig& config) {
  const std::vector<std::string_view> known = AdmissionPluginNames();
  auto is_known = [&](std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const std::string& name : config.enabled) {
    if (IsForeignPlugin(name))
      return Bad(fmt::format("enable-admission-plugins plugin \"{}\" is not built into this server", name));
    if (!is_known(name)) return Bad(fmt::format("enable-admission-plugins plugin \"{}\" is unknown", name));
  }
  std::string both;
  for (const std::string& name : config.disabled) {
    if (!is_known(name) && !IsForeignPlugin(name))
      return Bad(fmt::format("disable-admission-plugins plugin \"{}\" is unknown", name));
    if (config.enabled.count(name)) both += (both.empty() ? "" : " ") + name;
  }
  if (!both.empty())
    return Bad(
        fmt::format("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", both));
  if (config.enabled.count("EventRateLimit") && config.event_rate_limit.limits.empty())
    return Bad("EventRateLimit: limits: Invalid value: must not be empty");
  return {};
}

}  // namespace

Result<> ParseAdmissionConfiguration(std::string_view yaml, const std::string& directory,
                                     AdmissionConfig& config) {
  ASSIGN_OR_RETURN(json::value document, ParseYaml(yaml));
  ASSIGN_OR_RETURN(Reader root, Reader::Of(document, "AdmissionConfiguration"));
  RETURN_IF_ERROR(root.Kind("apiserver.config.k8s.io", "AdmissionConfiguration"));
  RETURN_IF_ERROR(root.Objects("plugins", [&](Reader& item) { return ReadPlugin(item, directory, config); }));
  return root.Done();
}

Result<AdmissionConfig> ReadAdmissionConfig(const std::vector<std::string>& enable,
                                            const std::vector<std::string>& disable,
                                            const std::string& file) {
  AdmissionConfig config;
  config.enabled.insert(enable.begin(), enable.end());
  config.disabled.insert(disable.begin(), disable.end());
  if (!file.empty()) {
    ASSIGN_OR_RETURN(std::string text, ReadFile(file));
    const size_t slash = file.rfind('/');
    Result<> parsed =
        ParseAdmissionConfiguration(text, slash == std::string::npos ? "." : file.substr(0, slash), config);
    if (!parsed) return parsed.error().Wrap(file);
  }
  RETURN_IF_ERROR(CheckNames(config));
  return config;
}

}  // namespace keelson::apiserver
