// What the kube-proxy daemon consists of.
#pragma once

#include "lib/base/error.h"
#include "proxy/config.h"

namespace keelson::proxy {

// Runs until SIGTERM or SIGINT; the process's exit code.
int RunProxy(const Config& config);
// --cleanup: takes the proxy's tables out of the kernel.
Result<> Cleanup(const Config& config);

}  // namespace keelson::proxy
