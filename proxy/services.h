// What the kube-proxy daemon consists of.
#pragma once

#include <functional>

#include "lib/base/error.h"
#include "proxy/config/config.h"

namespace keelson::proxy {

// The configuration anew, from flags and file as they are now.
using ReloadConfig = std::function<Result<Config>()>;
// Runs until SIGTERM or SIGINT; the process's exit code. When the configuration file changes, a proxy of
// which only the mode is another one switches to it; else it ends, and its supervisor restarts it.
int RunProxy(const Config& config, const ReloadConfig& reload);
// --init-only: what needs more than CAP_NET_ADMIN.
Result<> PrepareHost(const Config& config);
// --cleanup: takes the proxy's rules out of the kernel, and those that other proxies left.
Result<> Cleanup(const Config& config);

}  // namespace keelson::proxy
