// UDP has no connections, but the kernel tracks them: a sender that goes on keeps the translation, or the
// want of one, that its first packet met. Such entries are dropped when mappings come and go.
#pragma once

#include "cni/portmap/plan.h"

namespace keelson::cni {

// Entries of packets to the host's mapped UDP ports that lead elsewhere than to the container.
Result<> DropFlowsElsewhere(const PortmapConfig& config, const ContainerAddresses& addresses);
// Entries that lead to these ports of a container.
Result<> DropFlowsTo(const std::vector<MappedPort>& ports);

}  // namespace keelson::cni
