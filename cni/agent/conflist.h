// The CNI configuration that the container runtime reads: its presence is what makes a node Ready.
#pragma once

#include <string>

#include "cni/agent/config.h"
#include "cni/agent/plan.h"

namespace keelson::cni::agent {

// bridge with host-local, then portmap and bandwidth where the plugins are there (Config::bin_dir).
std::string ConflistText(const Config& config, const Plan& plan);

// Atomically, if the file holds something else; true if it did.
Result<bool> WriteConflist(const Config& config, const std::string& text);

}  // namespace keelson::cni::agent
