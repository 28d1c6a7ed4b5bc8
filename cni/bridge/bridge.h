// CNI plugin `bridge`: connects a container to a bridge of the host with a veth pair.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin BridgePlugin();

}  // namespace keelson::cni
