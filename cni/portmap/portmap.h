// CNI plugin `portmap`: maps ports of the host to ports of a container.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin PortmapPlugin();

}  // namespace keelson::cni
