// Running another plugin (IPAM) from a plugin: same environment, same configuration.
//
// A plugin that is found to be this very program under another name is called directly: starting a process
// takes as long as all else that an address manager does.
#pragma once

#include <string>

#include "cni/lib/plugin.h"

namespace keelson::cni {

// Looks `type` up in the request's CNI_PATH; its error becomes ours.
Outcome<AddResult> DelegateAdd(const std::string& type, const Request& request);
// The verbs that answer nothing: DEL, CHECK, STATUS, GC.
Outcome<> Delegate(const std::string& type, const std::string& command, const Request& request);

}  // namespace keelson::cni
