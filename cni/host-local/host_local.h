// CNI IPAM plugin `host-local`: assigns addresses from ranges of this host.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin HostLocalPlugin();

}  // namespace keelson::cni
