// Checks which device plugins may register.
#pragma once

#include <string>
#include <vector>

#include "kubelet/cm/devices/registration.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

// For kubelet.sock. kInvalid, with upstream's message: an unsupported version, or a name that is no extended
// resource.
Result<> CheckRegistration(const RegistrationRequest& request);
// For the plugin watcher, whose plugins name several versions.
Result<> CheckRegistration(const std::string& resource, const std::vector<std::string>& versions);

// Removes the sockets in `dir`. Plugins watch for that, and register again with the new kubelet.
void RemoveSockets(const std::string& dir);

}  // namespace keelson::kubelet::devices
