// How log lines look: --logging-format.
#pragma once

#include <string_view>

#include "lib/base/error.h"

namespace keelson::log {

// "text": a letter, the time, the message and key="value" pairs. "json": one object per line, as
// Kubernetes' programs write it: ts in milliseconds since 1970, msg, v (0, or 4 for debug messages; absent
// for errors) and the fields. kInvalid for any other name. Call once, at start.
Result<> SetFormat(std::string_view name);

// One line in JSON form, without the newline. `verbosity` below 0 means an error.
std::string JsonLine(double milliseconds, int verbosity, std::string_view message,
                     const std::pair<std::string_view, std::string>* fields, size_t count);

}  // namespace keelson::log
