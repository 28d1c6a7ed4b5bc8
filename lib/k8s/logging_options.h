// What LoggingConfiguration (k8s.io/component-base/logs/api/v1) holds that a program with one form of log has
// no use for: per-file verbosity (vmodule) and options of formats. It is read all the same, so that mistakes
// in it are told.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::k8s {

// vmodule: [{filePattern: text, verbosity: number}]; options: {json, text}, each {splitStream: bool,
// infoBufferSize: quantity, as a string or a number}. `logging` is the whole section. kBadRequest for a wrong
// type; `problems` gets what strict reading objects to.
Result<> CheckLoggingOptions(const boost::json::object& logging, std::vector<std::string>& problems);

// LoggingConfiguration.flushFrequency, which is a duration as a string, or nanoseconds as a number. In
// nanoseconds.
Result<int64_t> ParseFlushFrequency(const boost::json::value& value);

}  // namespace keelson::k8s
