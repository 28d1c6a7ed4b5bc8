// Runs programs of the host: mount(8), mkfs, fsck.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/event/process.h"

namespace keelson::kubelet {

struct ProgramEnd {
  Result<event::ExitStatus> status;  // kTimeout, kCancelled: it was killed
  std::string output;                // stdout and stderr
  bool ok() const { return status && status->ok(); }
  std::string Why() const { return status ? status->ToString() : status.error().message(); }
};

// Runs the program and waits for its end, for `patience` at most. An error: it cannot be started; kNotFound: it does
// not exist.
Result<ProgramEnd> RunProgram(const std::vector<std::string>& argv, std::stop_token stop,
                              std::chrono::milliseconds patience = std::chrono::milliseconds::max());

}  // namespace keelson::kubelet
