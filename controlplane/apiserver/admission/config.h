// What an operator can say of admission: which plugins run, and their settings (the file of
// --admission-control-config-file, kind AdmissionConfiguration of apiserver.config.k8s.io/v1).
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
  Mode enforce, audit, warn;  // of namespaces that say nothing
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

// kind ResourceQuotaConfiguration: what may only be had where a quota speaks of it.
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
  std::set<std::string, std::less<>> enabled, disabled;  // names that the flags gave
  PodSecurityConfig pod_security;
  EventRateLimitConfig event_rate_limit;
  ResourceQuotaConfig resource_quota;
  int64_t not_ready_toleration_seconds = 300, unreachable_toleration_seconds = 300;
};

// From the flags. `file` may be empty; settings of a plugin are in it, or in a file that it names.
Result<AdmissionConfig> ReadAdmissionConfig(const std::vector<std::string>& enable,
                                            const std::vector<std::string>& disable, const std::string& file);
// The settings alone. Relative paths are below `directory`.
Result<> ParseAdmissionConfiguration(std::string_view yaml, const std::string& directory,
                                     AdmissionConfig& config);

}  // namespace keelson::apiserver
