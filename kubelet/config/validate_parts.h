// Part of ValidateKubeletConfig: the rules about lists, paths and structures.
#pragma once

#include <string>
#include <vector>

#include "kubelet/config/config.h"

namespace keelson::kubelet {

// Appends broken rules, with upstream's messages.
void CheckParts(const KubeletConfig& config, std::vector<std::string>& problems);

}  // namespace keelson::kubelet
