// Where this server's own group versions stand in discovery: upstream's table, as APIServices have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace keelson::apiserver {

struct ApiServicePriority {
  int32_t group = 0, version = 0;  // groupPriorityMinimum, versionPriority
};

inline constexpr ApiServicePriority kCustomPriority{1000, 100};  // of custom resources
// The group of APIServices comes first, and has none itself.
inline constexpr ApiServicePriority kFirstPriority{20001, 1};

// metrics.k8s.io has what the manifest of metrics-server says. Nothing: no group version of this server.
std::optional<ApiServicePriority> BuiltInPriority(std::string_view group, std::string_view version);

}  // namespace keelson::apiserver
