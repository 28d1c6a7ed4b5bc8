// Runs another plugin (IPAM) from a plugin, with the same environment and configuration.
//
// A plugin that is this very program under another name is called directly: starting a process takes as
// long as everything else that an address manager does.
#pragma once

#include <string>

#include "cni/lib/plugin.h"

namespace keelson::cni {

// Finds `type` in the request's CNI_PATH and runs ADD. Returns the plugin's error as it is.
Outcome<AddResult> DelegateAdd(const std::string& type, const Request& request);
// Runs a command without a result: DEL, CHECK, STATUS, GC.
Outcome<> Delegate(const std::string& type, const std::string& command, const Request& request);

}  // namespace keelson::cni
