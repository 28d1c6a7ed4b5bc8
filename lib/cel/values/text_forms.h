// Formats of OpenAPI strings, as upstream's strfmt reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/cel/values/value.h"

namespace keelson::cel {

std::optional<int64_t> ParseFormatDuration(
    std::string_view text);  // Go's form, or "3 days 2 hours"; nanoseconds
std::optional<Timestamp> ParseFormatDateTime(
    std::string_view text);  // RFC 3339 and its neighbours in ISO 8601

}  // namespace keelson::cel
