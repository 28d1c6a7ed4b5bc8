#include "lib/component/logging_options.h"

#include "lib/base/log.h"
#include "lib/base/log_format.h"

namespace keelson::component {

Result<> ApplyLogFormat(const std::string& format) {
  if (log::SetFormat(format)) return {};
  return Error(Code::kInvalid, "initialize logging: logging.format: Invalid value: \"" + format +
                                   "\": Unsupported log format");
}

void ApplyVerbosity(int verbosity) {
  log::SetLevel(verbosity >= kDebugVerbosity ? log::Level::kDebug : log::Level::kInfo);
}

void ReadLoggingOptions(DocumentReader& document) {
  document.List("logging.vmodule", [](DocumentReader& item) {
    std::string pattern;
    item.Read("filePattern", pattern);
    const boost::json::value* verbosity = item.Raw("verbosity");
    if (verbosity && (!verbosity->is_int64() || verbosity->get_int64() < 0)) {
      item.WrongType("verbosity", *verbosity, "v1.VerbosityLevel");
    }
  });
  for (const std::string format : {"json", "text"}) {
    bool split = false;
    component::QuantityText size;
    document.Read("logging.options." + format + ".splitStream", split);
    document.Read("logging.options." + format + ".infoBufferSize", size);
  }
}

}  // namespace keelson::component
