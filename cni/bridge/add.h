// The bridge plugin's ADD.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

// All or nothing: a failed ADD undoes what it made for the container. The bridge, its gateway addresses and
// the masquerade chain are shared by all containers and stay.
Outcome<AddResult> AddToBridge(const Request& request);

}  // namespace keelson::cni
