// The CNI configuration for the container runtime. A node becomes Ready when it exists.
#pragma once

#include <string>

#include "cni/agent/config.h"
#include "cni/agent/plan.h"

namespace keelson::cni::agent {

// The plugin that waits for a pod's network policies. Unlike others it is chained even if it is not there, so
// that no pod starts without it.
inline constexpr char kPolicyPlugin[] = "keelson-policy";

// bridge with host-local, keelson-policy if policies are enforced, then portmap and bandwidth if the plugins are installed (Config::bin_dir).
std::string ConflistText(const Config& config, const Plan& plan);

// Writes the file atomically if its contents differ; true if it did.
Result<bool> WriteConflist(const Config& config, const std::string& text);

}  // namespace keelson::cni::agent
