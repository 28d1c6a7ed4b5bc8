// The version that these programs report: the Kubernetes release whose API they implement.
#pragma once

#include <string>

#include "lib/base/build_info.h"

namespace keelson {

inline constexpr const char* kMajor = "1";
inline constexpr const char* kMinor = "36";
inline constexpr const char* kGitVersion = "v1.36.2";
#if defined(__aarch64__)
inline constexpr const char* kPlatform = "linux/arm64";
#else
inline constexpr const char* kPlatform = "linux/amd64";
#endif

// What --version prints: "Kubernetes v1.36.2".
inline std::string VersionText() { return std::string("Kubernetes ") + kGitVersion; }

}  // namespace keelson
