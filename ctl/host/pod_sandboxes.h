// Pods at a container runtime, by CRI.
#pragma once

#include <string>

#include "lib/base/error.h"

namespace keelson::ctl {

// Stops and removes all pod sandboxes, with their containers and networks; returns how many there were. `socket`: a path.
// kUnavailable: no runtime answers there. After another error some may be left.
Result<int> RemovePodSandboxes(const std::string& socket);

}  // namespace keelson::ctl
