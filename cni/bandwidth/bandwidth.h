// CNI plugin `bandwidth`: limits how fast a container receives and sends.
#pragma once

#include "cni/lib/plugin.h"

namespace keelson::cni {

Plugin BandwidthPlugin();

}  // namespace keelson::cni
