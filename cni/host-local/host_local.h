// CNI IPAM plugin `host-local`: hands out addresses of this host's ranges.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin HostLocalPlugin();

}  // namespace keelson::cni
