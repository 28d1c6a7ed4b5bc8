// Durations in Go's form: metav1.Duration, configuration files, flags.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/error.h"

namespace keelson::api {

std::string FormatGoDuration(int64_t nanos);  // 1h30m0s, 1.5s, 100ms, 0s
Result<int64_t> ParseGoDuration(std::string_view text);

}  // namespace keelson::api
