#include "lib/component/program.h"

#include <CLI/CLI.hpp>

#include "lib/base/log.h"
#include "lib/base/version.h"
#include "lib/component/flags.h"
#include "lib/component/logging_options.h"

namespace keelson::component {

std::optional<int> ParseProgram(CLI::App& app, int argc, const char* const* argv) {
  app.set_version_flag("--version", VersionText());
  return ParseFlags(app, argc, argv);
}

Result<> StartLogging(const Logging& logging, const std::vector<const FlagWithoutEffect*>& given) {
  KEELSON_RETURN_IF_ERROR(component::ApplyLogFormat(logging.format));
  component::ApplyVerbosity(logging.verbosity);
  TellFlagsWithoutEffect(given);
  return {};
}

int ExitCode(const Result<int>& result, std::string_view message) {
  if (result) return *result;
  log::Error(message, {{"err", result.error()}});
  return 1;
}

int ExitCode(const Result<>& result, std::string_view message) {
  return ExitCode(result ? Result<int>(0) : Result<int>(result.error()), message);
}

}  // namespace keelson::component
