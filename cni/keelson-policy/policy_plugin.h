// CNI plugin `keelson-policy`: chained behind bridge, it holds the container back until network policies for it
// are in place.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin NetworkPolicyPlugin();

}  // namespace keelson::cni
