// The CNI configuration for the container runtime. A node becomes Ready when it exists.
#pragma once

#include <string>

#include "cni/agent/config.h"
#include "cni/agent/plan.h"

namespace keelson::cni::agent {

// bridge with host-local, then portmap and bandwidth if the plugins are installed (Config::bin_dir).
std::string ConflistText(const Config& config, const Plan& plan);

// Writes the file atomically if its contents differ; true if it did.
Result<bool> WriteConflist(const Config& config, const std::string& text);

}  // namespace keelson::cni::agent
