// CNI plugin `bridge`: joins a container to a bridge of the host by a veth pair.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin BridgePlugin();

}  // namespace keelson::cni
