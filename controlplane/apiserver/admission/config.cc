#include "controlplane/apiserver/admission/config.h"

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/webhook/config_reader.h"
#include "lib/base/file.h"

namespace keelson::apiserver {
namespace {

Error Bad(std::string_view what) { return Error(Code::kInvalid, std::string(what)); }

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

void ReadMode(ConfigReader& defaults, const std::string& key, PodSecurityConfig::Mode& mode) {
  const std::string version = key + "-version";
  mode.level = defaults.Text(key.c_str(), mode.level);
  mode.version = defaults.Text(version.c_str(), mode.version);
  if (!IsLevel(mode.level)) {
    defaults.Fail(
        key.c_str(),
        fmt::format("Invalid value: \"{}\": must be one of privileged, baseline, restricted", mode.level));
  }
  if (!IsVersion(mode.version)) {
    defaults.Fail(version.c_str(),
                  fmt::format("Invalid value: \"{}\": must be \"latest\" or \"v1.x\"", mode.version));
  }
}

std::set<std::string, std::less<>> ReadSet(ConfigReader& from, const char* field) {
  std::set<std::string, std::less<>> out;
  for (std::string& value : from.Texts(field)) {
    if (value.empty()) from.Fail(field, "Invalid value: \"\": must not be empty");
    if (!out.insert(value).second) from.Fail(field, fmt::format("Duplicate value: \"{}\"", value));
  }
  return out;
}

void ReadPodSecurity(ConfigReader& from, AdmissionConfig& config) {
  from.ExpectKind("pod-security.admission.config.k8s.io", "PodSecurityConfiguration");
  PodSecurityConfig& out = config.pod_security;
  ConfigReader defaults = from.Map("defaults");
  ReadMode(defaults, "enforce", out.enforce);
  ReadMode(defaults, "audit", out.audit);
  ReadMode(defaults, "warn", out.warn);
  from.Take(defaults);
  ConfigReader exemptions = from.Map("exemptions");
  out.exempt_usernames = ReadSet(exemptions, "usernames");
  out.exempt_namespaces = ReadSet(exemptions, "namespaces");
  out.exempt_runtime_classes = ReadSet(exemptions, "runtimeClasses");
  from.Take(exemptions);
}

void ReadEventRateLimit(ConfigReader& from, AdmissionConfig& config) {
  from.ExpectKind("eventratelimit.admission.k8s.io", "Configuration");
  for (ConfigReader& item : from.Maps("limits")) {
    EventRateLimitConfig::Limit limit;
    limit.type = item.Text("type");
    limit.qps = item.Int("qps", 0);
    limit.burst = item.Int("burst", 0);
    const int32_t cache = item.Int("cacheSize", 0);
    if (limit.type != "Server" && limit.type != "Namespace" && limit.type != "User" &&
        limit.type != "SourceAndObject") {
      item.Fail("type", fmt::format("Unsupported value: \"{}\": supported values: \"Namespace\", \"Server\", "
                                    "\"SourceAndObject\", \"User\"",
                                    limit.type));
    }
    if (limit.burst <= 0) item.Fail("burst", "Invalid value: must be positive");
    if (limit.qps <= 0) item.Fail("qps", "Invalid value: must be positive");
    if (cache < 0) item.Fail("cacheSize", "Invalid value: must not be negative");
    if (cache > 0) limit.cache_size = cache;
    from.Take(item);
    config.event_rate_limit.limits.push_back(std::move(limit));
  }
  if (config.event_rate_limit.limits.empty()) from.Fail("limits", "Invalid value: must not be empty");
}

void ReadResourceQuota(ConfigReader& from, AdmissionConfig& config) {
  // Both names have been in use.
  if (from.Text("kind") == "Configuration") {
    from.ExpectKind("resourcequota.admission.k8s.io", "Configuration");
  } else {
    from.ExpectKind("apiserver.config.k8s.io", "ResourceQuotaConfiguration");
  }
  for (ConfigReader& item : from.Maps("limitedResources")) {
    ResourceQuotaConfig::Limited limited;
    limited.group = item.Text("apiGroup");
    limited.resource = item.Required("resource");
    limited.match_contains = item.Texts("matchContains");
    for (ConfigReader& scope : item.Maps("matchScopes")) {
      limited.match_scopes.push_back(
          {scope.Text("scopeName"), scope.Text("operator"), scope.Texts("values")});
      item.Take(scope);
    }
    from.Take(item);
    config.resource_quota.limited.push_back(std::move(limited));
  }
}

struct Section {
  std::string_view plugin;
  void (*read)(ConfigReader& from, AdmissionConfig& config);
};
constexpr Section kSections[] = {
    {"PodSecurity", ReadPodSecurity},
    {"EventRateLimit", ReadEventRateLimit},
    {"ResourceQuota", ReadResourceQuota},
};

// A plugin's configuration: inline, or in a file relative to `directory`.
Result<> ReadPlugin(ConfigReader& item, const std::string& directory, AdmissionConfig& config) {
  const std::string name = item.Text("name"), path = item.Text("path");
  const bool in_place = item.Has("configuration");
  const Section* section = nullptr;
  for (const Section& one : kSections) {
    if (one.plugin == name) section = &one;
  }
  if (!section) return Bad(fmt::format("plugin \"{}\" takes no configuration", name));
  if (!in_place && path.empty()) return {};
  auto read = [&](ConfigReader reader) {
    section->read(reader, config);
    return reader.Finish();
  };
  if (in_place) return read(item.Map("configuration"));
  ASSIGN_OR_RETURN(std::string text, ReadFile(path[0] == '/' ? path : directory + "/" + path));
  Result<ConfigReader> file = ConfigReader::Mapping(text);
  Result<> done = file ? read(std::move(*file)) : Result<>(file.error());
  return done ? done : done.error().Wrap(path);
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
  ASSIGN_OR_RETURN(ConfigReader root, ConfigReader::Mapping(std::string(yaml)));
  root.ExpectKind("apiserver.config.k8s.io", "AdmissionConfiguration");
  for (ConfigReader& item : root.Maps("plugins")) {
    const std::string name = item.Text("name");
    if (Result<> read = ReadPlugin(item, directory, config); !read) return read.error().Wrap(name);
    root.Take(item);
  }
  return root.Finish();
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
