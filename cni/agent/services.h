// The services of the kube-cni daemon.
#pragma once

#include "cni/agent/config.h"
#include "lib/base/error.h"

namespace keelson::cni::agent {

// Runs until SIGTERM or SIGINT; returns the process's exit code.
int RunAgent(const Config& config);
// --cleanup: removes routes, devices, rules, the CNI configuration, and the bridge once no pod is on it.
Result<> Cleanup(const Config& config);

}  // namespace keelson::cni::agent
