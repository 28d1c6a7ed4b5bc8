// How log lines look: --logging-format.
#pragma once

#include <string_view>

#include "lib/base/error.h"

namespace keelson::log {

// "text": a letter, the time, the message and key="value" pairs. "json": an object a line, as Kubernetes'
// programs write it: ts in milliseconds since 1970, msg, v (0, or 4 for debug messages; none of errors), and
// the fields. kInvalid for anything else. Once, at start.
Result<> SetFormat(std::string_view name);

// One line of the JSON form, without its end. `verbosity` below 0: an error.
std::string JsonLine(double milliseconds, int verbosity, std::string_view message,
                     const std::pair<std::string_view, std::string>* fields, size_t count);

}  // namespace keelson::log
