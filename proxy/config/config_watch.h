// Watches a configuration file while the program runs.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "lib/base/error.h"

namespace keelson::proxy {

// Blocks until `stop`. Calls `look` when the watch exists, and after each write, rename or replacement of the file,
// once the file is quiet. Returns the error of `look`.
Result<> FollowFile(const std::string& path, std::stop_token stop, const std::function<Result<>()>& look);

}  // namespace keelson::proxy
