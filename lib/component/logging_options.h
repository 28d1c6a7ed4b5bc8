// LoggingConfiguration (k8s.io/component-base/logs/api/v1): its format, and what has no effect here, per-file
// verbosity (vmodule) and options of formats. Those are read all the same, to report mistakes in them.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

// Writes the log in this format from now on: "text" or "json" (lib/base/log_format.h). kInvalid, in
// upstream's words, for any other. Once, at start.
Result<> ApplyLogFormat(const std::string& format);

// vmodule: [{filePattern: text, verbosity: number}]; options: {json, text}, each {splitStream: bool,
// infoBufferSize: quantity, as a string or a number}. `logging` is the whole section. kBadRequest for a wrong
// type; `problems` gets what strict reading objects to.
Result<> CheckLoggingOptions(const boost::json::object& logging, std::vector<std::string>& problems);

// LoggingConfiguration.flushFrequency, which is a duration as a string, or nanoseconds as a number. In
// nanoseconds.
Result<int64_t> ParseFlushFrequency(const boost::json::value& value);

}  // namespace keelson::k8s
