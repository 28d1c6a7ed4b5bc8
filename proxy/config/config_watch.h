// A configuration file that is followed while the program runs.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::proxy {

// Blocks until `stop`. Calls `look` once the file is watched, and whenever it has been written, renamed or
// replaced, and has been let alone since; when that fails, so does this.
Result<> FollowFile(const std::string& path, std::stop_token stop, const std::function<Result<>()>& look);

}  // namespace keelson::proxy
