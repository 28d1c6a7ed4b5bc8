// LoggingConfiguration (k8s.io/component-base/logs/api/v1): its format and verbosity, and what has no effect
// here, per-file verbosity (vmodule) and options of formats. Those are read all the same, to report mistakes.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "lib/component/document_reader.h"

namespace keelson::component {

// Writes the log in this format from now on: "text" or "json" (lib/base/log_format.h). kInvalid, in
// upstream's words, for any other. Once, at start.
Result<> ApplyLogFormat(const std::string& format);

// From this verbosity on a program logs debugging messages; docs/flags.md has the table.
constexpr int kDebugVerbosity = 4;
// -v of every program, logging.verbosity and /debug/flags/v.
void ApplyVerbosity(int verbosity);

// Reads the fields of `document`'s section logging that change nothing: vmodule, a list of {filePattern,
// verbosity}, and options.{json,text}.{splitStream,infoBufferSize}.
void ReadLoggingOptions(component::DocumentReader& document);

}  // namespace keelson::component
