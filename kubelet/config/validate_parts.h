// Of ValidateKubeletConfig: rules about lists, paths and structures, one part of the configuration at a time.
#pragma once

#include <string>
#include <vector>

#include "kubelet/config/config.h"

namespace keelson::kubelet {

// Adds what is wrong, in upstream's words.
void CheckParts(const KubeletConfig& config, std::vector<std::string>& problems);

}  // namespace keelson::kubelet
