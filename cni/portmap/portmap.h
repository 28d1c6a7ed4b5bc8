// CNI plugin `portmap`: ports of the host lead to ports of a container.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin PortmapPlugin();

}  // namespace keelson::cni
