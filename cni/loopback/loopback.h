// CNI plugin `loopback`: brings lo up in a container's network namespace.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin LoopbackPlugin();

}  // namespace keelson::cni
