// The bridge plugin's ADD.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

// All or nothing: what a failed ADD has made for the container is undone. The bridge itself, its gateway
// addresses and the masquerade chain belong to all containers and stay.
Outcome<AddResult> AddToBridge(const Request& request);

}  // namespace keelson::cni
