// Admission settings: enabled plugins, and plugin configurations from --admission-control-config-file (kind
// AdmissionConfiguration, apiserver.config.k8s.io/v1).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::apiserver {

// kind PodSecurityConfiguration, pod-security.admission.config.k8s.io.
struct PodSecurityConfig {
  struct Mode {
    std::string level = "privileged", version = "latest";
  };
  Mode enforce, audit, warn;  // defaults for namespaces without labels
  std::set<std::string, std::less<>> exempt_usernames, exempt_namespaces, exempt_runtime_classes;
};

// kind Configuration, eventratelimit.admission.k8s.io.
struct EventRateLimitConfig {
  struct Limit {
    std::string type;  // Server, Namespace, User, SourceAndObject
    int32_t qps = 0, burst = 0, cache_size = 4096;
  };
  std::vector<Limit> limits;
};

// kind ResourceQuotaConfiguration: resources that may be consumed only where a quota covers them.
struct ResourceQuotaConfig {
  struct Scope {
    std::string name, op;
    std::vector<std::string> values;
  };
  struct Limited {
    std::string group, resource;
    std::vector<std::string> match_contains;
    std::vector<Scope> match_scopes;
  };
  std::vector<Limited> limited;
};

struct AdmissionConfig {
  std::set<std::string, std::less<>> enabled, disabled;  // plugin names from the flags
  PodSecurityConfig pod_security;
  EventRateLimitConfig event_rate_limit;
  ResourceQuotaConfig resource_quota;
  int64_t not_ready_toleration_seconds = 300, unreachable_toleration_seconds = 300;
};

// Reads the flags' settings. `file` may be empty; it contains plugin configurations or paths to them.
Result<AdmissionConfig> ReadAdmissionConfig(const std::vector<std::string>& enable,
                                            const std::vector<std::string>& disable, const std::string& file);
// Parses the configuration file only. Relative paths are below `directory`.
Result<> ParseAdmissionConfiguration(std::string_view yaml, const std::string& directory,
                                     AdmissionConfig& config);

}  // namespace keelson::apiserver
