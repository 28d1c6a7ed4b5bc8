// The driver as a whole.
#pragma once

#include "csi/local/model/config.h"
#include "lib/base/error.h"

namespace keelson::csi::local {

// Serves until SIGTERM or SIGINT; returns the exit code.
Result<int> RunDriver(const Config& config);

}  // namespace keelson::csi::local
