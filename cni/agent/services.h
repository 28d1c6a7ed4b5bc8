// What the kube-cni daemon consists of.
#pragma once

#include "cni/agent/config.h"
#include "lib/base/error.h"

namespace keelson::cni::agent {

// Runs until SIGTERM or SIGINT; the process's exit code.
int RunAgent(const Config& config);
// --cleanup: takes routes, devices, rules and the CNI configuration away.
Result<> Cleanup(const Config& config);

}  // namespace keelson::cni::agent
