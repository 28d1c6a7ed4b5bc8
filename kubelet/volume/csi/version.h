// Versions of CSI that a driver names when it registers. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet::csi {

struct Version {
  std::vector<uint64_t> parts;  // at least two; missing ones are zero
  std::string text;             // 1.9.0
  bool operator<(const Version& other) const;
};

// "1.9.0", "v1.0", "1.2.3-rc1". kInvalid, in upstream's words.
Result<Version> ParseVersion(std::string_view text);
// The highest of them that is not of a major version after 1. kInvalid, in upstream's words: none, or it is not of 1.
Result<Version> HighestSupportedVersion(const std::vector<std::string>& versions);

}  // namespace keelson::kubelet::csi
