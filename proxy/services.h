// What the kube-proxy daemon consists of.
#pragma once

#include "lib/base/error.h"
#include "proxy/config.h"

namespace keelson::proxy {

// Runs until SIGTERM or SIGINT; the process's exit code.
int RunProxy(const Config& config);
// --init-only: what needs more than CAP_NET_ADMIN.
Result<> PrepareHost(const Config& config);
// --cleanup: takes the proxy's rules out of the kernel, and those that other proxies left.
Result<> Cleanup(const Config& config);

}  // namespace keelson::proxy
