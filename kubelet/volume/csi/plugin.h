// The volume plugin kubernetes.io/csi: volumes of the drivers that are registered on this node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kubelet/volume/csi/drivers.h"
#include "kubelet/volume/plugin.h"

namespace keelson::kubelet::csi {

// References have to outlive the plugin. `exhausted`: the node takes fewer volumes of the driver than it said; may be
// empty, must not block.
std::unique_ptr<VolumePlugin> NewPlugin(Mounter& mounter, ObjectSource& objects, Drivers& drivers,
                                        Clock& clock,
                                        std::function<void(const std::string& driver)> exhausted = {});

}  // namespace keelson::kubelet::csi
