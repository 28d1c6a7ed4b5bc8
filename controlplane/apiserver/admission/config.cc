#include "controlplane/apiserver/admission/config.h"

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/base/file.h"
#include "lib/component/document_reader.h"

namespace keelson::apiserver {
namespace {

using component::DocumentReader;

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

// The kind of a part that is a document of its own, in any version of the group.
void ExpectKind(DocumentReader& from, const std::string& group, const std::string& kind) {
  std::string version, found;
  from.Read("apiVersion", version);
  from.Read("kind", found);
  if (found == kind && version.substr(0, version.find('/')) == group) return;
  from.Problem("kind", fmt::format("no kind \"{}\" is registered for version \"{}\"; expected {} of {}",
                                   found, version, kind, group));
}

void ReadMode(DocumentReader& defaults, const std::string& key, PodSecurityConfig::Mode& mode) {
  const std::string version = key + "-version";
  defaults.Read(key, mode.level);
  defaults.Read(version, mode.version);
  if (!IsLevel(mode.level)) {
    defaults.Problem(
        key,
        fmt::format("Invalid value: \"{}\": must be one of privileged, baseline, restricted", mode.level));
  }
  if (!IsVersion(mode.version)) {
    defaults.Problem(version,
                     fmt::format("Invalid value: \"{}\": must be \"latest\" or \"v1.x\"", mode.version));
  }
}

std::set<std::string, std::less<>> ReadSet(DocumentReader& from, const char* field) {
  std::set<std::string, std::less<>> out;
  std::vector<std::string> values;
  from.Read(field, values);
  for (const std::string& value : values) {
    if (value.empty()) from.Problem(field, "Invalid value: \"\": must not be empty");
    if (!out.insert(value).second) from.Problem(field, fmt::format("Duplicate value: \"{}\"", value));
  }
  return out;
}

void ReadPodSecurity(DocumentReader& from, AdmissionConfig& config) {
  ExpectKind(from, "pod-security.admission.config.k8s.io", "PodSecurityConfiguration");
  PodSecurityConfig& out = config.pod_security;
  from.Object("defaults", [&](DocumentReader& defaults) {
    ReadMode(defaults, "enforce", out.enforce);
    ReadMode(defaults, "audit", out.audit);
    ReadMode(defaults, "warn", out.warn);
  });
  from.Object("exemptions", [&](DocumentReader& exemptions) {
    out.exempt_usernames = ReadSet(exemptions, "usernames");
    out.exempt_namespaces = ReadSet(exemptions, "namespaces");
    out.exempt_runtime_classes = ReadSet(exemptions, "runtimeClasses");
  });
}

void ReadEventRateLimit(DocumentReader& from, AdmissionConfig& config) {
  ExpectKind(from, "eventratelimit.admission.k8s.io", "Configuration");
  from.List("limits", [&](DocumentReader& item) {
    EventRateLimitConfig::Limit limit{};
    int32_t cache = 0;
    limit.qps = limit.burst = 0;
    item.Read("type", limit.type);
    item.Read("qps", limit.qps);
    item.Read("burst", limit.burst);
    item.Read("cacheSize", cache);
    if (limit.type != "Server" && limit.type != "Namespace" && limit.type != "User" &&
        limit.type != "SourceAndObject") {
      item.Problem("type",
                   fmt::format("Unsupported value: \"{}\": supported values: \"Namespace\", \"Server\", "
                               "\"SourceAndObject\", \"User\"",
                               limit.type));
    }
    if (limit.burst <= 0) item.Problem("burst", "Invalid value: must be positive");
    if (limit.qps <= 0) item.Problem("qps", "Invalid value: must be positive");
    if (cache < 0) item.Problem("cacheSize", "Invalid value: must not be negative");
    if (cache > 0) limit.cache_size = cache;
    config.event_rate_limit.limits.push_back(std::move(limit));
  });
  if (config.event_rate_limit.limits.empty()) from.Problem("limits", "Invalid value: must not be empty");
}

void ReadResourceQuota(DocumentReader& from, AdmissionConfig& config) {
  // Both names have been in use.
  std::string kind;
  from.Read("kind", kind);
  if (kind == "Configuration") {
    ExpectKind(from, "resourcequota.admission.k8s.io", "Configuration");
  } else {
    ExpectKind(from, "apiserver.config.k8s.io", "ResourceQuotaConfiguration");
  }
  from.List("limitedResources", [&](DocumentReader& item) {
    ResourceQuotaConfig::Limited& limited = config.resource_quota.limited.emplace_back();
    item.Read("apiGroup", limited.group);
    item.Read("resource", limited.resource);
    if (limited.resource.empty()) item.Problem("resource", "Required value");
    item.Read("matchContains", limited.match_contains);
    item.List("matchScopes", [&](DocumentReader& from_scope) {
      auto& scope = limited.match_scopes.emplace_back();
      from_scope.Read("scopeName", scope.name);
      from_scope.Read("operator", scope.op);
      from_scope.Read("values", scope.values);
    });
  });
}

struct Section {
  std::string_view plugin;
  void (*read)(DocumentReader& from, AdmissionConfig& config);
};
constexpr Section kSections[] = {
    {"PodSecurity", ReadPodSecurity},
    {"EventRateLimit", ReadEventRateLimit},
    {"ResourceQuota", ReadResourceQuota},
};

// Settings in a file relative to `directory`.
Result<> ReadPluginFile(const Section& section, const std::string& path, AdmissionConfig& config) {
  KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  component::DocumentProblems problems{.words = component::TypeWords::kMustBe};
  KEELSON_ASSIGN_OR_RETURN(const auto document, component::ParseDocument(text, problems));
  {
    DocumentReader from(document, problems);
    section.read(from, config);
  }
  return component::RefuseProblems(problems);
}

// A plugin's settings: in place, or in a file.
void ReadPlugin(DocumentReader& item, const std::string& directory, AdmissionConfig& config) {
  std::string name, path;
  item.Read("name", name);
  item.Read("path", path);
  const bool in_place = item.Has("configuration");
  const Section* section = nullptr;
  for (const Section& one : kSections) {
    if (one.plugin == name) section = &one;
  }
  if (!section) return item.Problem("name", fmt::format("plugin \"{}\" takes no configuration", name));
  if (in_place) {
    return item.Object("configuration", [&](DocumentReader& from) { section->read(from, config); });
  }
  if (path.empty()) return;
  const Result<> read = ReadPluginFile(*section, path[0] == '/' ? path : directory + "/" + path, config);
  if (!read) item.Problem("path", fmt::format("{}: {}", path, read.error().message()));
}

Result<> CheckNames(const AdmissionConfig& config) {
  const std::vector<std::string_view> known = AdmissionPluginNames();
  auto is_known = [&](std::string_view name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  for (const std::string& name : config.enabled) {
    if (IsForeignPlugin(name)) {
      return Bad(fmt::format("enable-admission-plugins plugin \"{}\" is not built into this server", name));
    }
    if (!is_known(name)) return Bad(fmt::format("enable-admission-plugins plugin \"{}\" is unknown", name));
  }
  std::string both;
  for (const std::string& name : config.disabled) {
    if (!is_known(name) && !IsForeignPlugin(name)) {
      return Bad(fmt::format("disable-admission-plugins plugin \"{}\" is unknown", name));
    }
    if (config.enabled.count(name)) both += (both.empty() ? "" : " ") + name;
  }
  if (!both.empty()) {
    return Bad(
        fmt::format("[{}] in enable-admission-plugins and disable-admission-plugins overlapped", both));
  }
  if (config.enabled.count("EventRateLimit") && config.event_rate_limit.limits.empty()) {
    return Bad("EventRateLimit: limits: Invalid value: must not be empty");
  }
  return {};
}

}  // namespace

Result<> ParseAdmissionConfiguration(std::string_view yaml, const std::string& directory,
                                     AdmissionConfig& config) {
  component::DocumentProblems problems{.words = component::TypeWords::kMustBe};
  KEELSON_ASSIGN_OR_RETURN(const auto document, component::ParseDocument(yaml, problems));
  KEELSON_RETURN_IF_ERROR(
      component::CheckType(document, {"AdmissionConfiguration", {"apiserver.config.k8s.io/"}}));
  {
    DocumentReader root(document, problems);
    root.Ignore({"kind", "apiVersion"});
    root.List("plugins", [&](DocumentReader& item) { ReadPlugin(item, directory, config); });
  }
  return component::RefuseProblems(problems);
}

Result<AdmissionConfig> ReadAdmissionConfig(const std::vector<std::string>& enable,
                                            const std::vector<std::string>& disable,
                                            const std::string& file) {
  AdmissionConfig config;
  config.enabled.insert(enable.begin(), enable.end());
  config.disabled.insert(disable.begin(), disable.end());
  if (!file.empty()) {
    KEELSON_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
    const size_t slash = file.rfind('/');
    Result<> parsed =
        ParseAdmissionConfiguration(text, slash == std::string::npos ? "." : file.substr(0, slash), config);
    if (!parsed) return parsed.error().Wrap(file);
  }
  KEELSON_RETURN_IF_ERROR(CheckNames(config));
  return config;
}

}  // namespace keelson::apiserver
