// What main() of every program does, in this order:
//
//   BlockSignals();                                         // lib/base/signals.h
//   event::LoopsOfProcess loops;
//   CLI::App app{"kube-proxy programs Services"};
//   AddFlags(app, flags);
//   if (auto done = component::ParseProgram(app, argc, argv)) return *done;
//   return component::ExitCode(Run(flags), "Cannot start"); // which begins with StartLogging()
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/component/flags_without_effect.h"

namespace keelson::component {

// Adds --version, and parses (lib/component/flags.h). nullopt: go on. Else what to exit with.
std::optional<int> ParseProgram(CLI::App& app, int argc, const char* const* argv);

struct Logging {
  std::string format = "text";
  int verbosity = 0;
};
// Log format and verbosity; names the flags that were given and change nothing. kInvalid for an unknown format.
Result<> StartLogging(const Logging& logging, const std::vector<const FlagWithoutEffect*>& given = {});

// Of what a program returned; an error is logged with `message`, and is 1.
int ExitCode(const Result<int>& result, std::string_view message);
int ExitCode(const Result<>& result, std::string_view message);

}  // namespace keelson::component
