// Runs programs of the system.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/event/process.h"

namespace keelson::csi::local {

struct Ended {
  event::ExitStatus status;
  std::string output;  // stdout and stderr
  std::string errors;  // stderr, where it is apart
};

struct RunOptions {
  std::chrono::milliseconds timeout = std::chrono::milliseconds::max();
  // Otherwise the program dies with this process: nothing writes to a file that the next process takes for its own.
  bool survives = false;
  bool apart = false;  // Ended::output is stdout alone
};

// kConflict: the program is not installed. kCancelled, kTimeout: `stop` was asked for, or the time is over; the program is
// killed.
Result<Ended> RunProgram(const std::vector<std::string>& argv, const std::stop_token& stop = {});
Result<Ended> RunProgram(const std::vector<std::string>& argv, const RunOptions& how,
                         const std::stop_token& stop = {});
// What to report of a program that has failed.
Error ProgramError(const std::vector<std::string>& argv, const Ended& ended);

}  // namespace keelson::csi::local
