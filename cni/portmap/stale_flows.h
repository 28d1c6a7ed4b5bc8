// The kernel tracks UDP flows: a sender that continues keeps the translation (or lack of one) of its first
// packet. These functions delete such entries when mappings come and go.
#pragma once

#include "cni/portmap/plan.h"

namespace keelson::cni {

// Deletes entries for packets to the host's mapped UDP ports that lead elsewhere than to the container.
Result<> DropFlowsElsewhere(const PortmapConfig& config, const ContainerAddresses& addresses);
// Deletes entries that lead to these ports of a container.
Result<> DropFlowsTo(const std::vector<MappedPort>& ports);

}  // namespace keelson::cni
