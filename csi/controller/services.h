// The services of keelson-csi-controller.
#pragma once

#include "csi/controller/config.h"

namespace keelson::csi::controller {

// Runs until SIGTERM or SIGINT; returns the exit code. A controller that loses its Lease ends the process with code 1.
Result<int> RunController(const Config& config);

}  // namespace keelson::csi::controller
