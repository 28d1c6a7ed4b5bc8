// A proxy whose configuration file changes ends, as upstream's does: whoever runs it starts it anew.
#pragma once

#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::proxy {

// Blocks until `stop`, or fails once the file is written or renamed.
Result<> EndWhenChanged(const std::string& path, std::stop_token stop);

}  // namespace keelson::proxy
