// Runs programs of the system.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/event/process.h"

namespace keelson::csi::local {

struct Ended {
  event::ExitStatus status;
  std::string output;  // stdout and stderr
};

// The program dies with this process: nothing writes to a file that the next process takes for its own. kConflict: it is
// not installed. kCancelled: `stop` was asked for; the program is killed.
Result<Ended> RunProgram(const std::vector<std::string>& argv, const std::stop_token& stop = {});
// What to report of a program that has failed.
Error ProgramError(const std::vector<std::string>& argv, const Ended& ended);

}  // namespace keelson::csi::local
