// Which plugins may register, by whichever way.
#pragma once

#include <string>
#include <vector>

#include "kubelet/cm/devices/registration.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

// kInvalid, in upstream's words, unless the version is ours and the name that of an extended resource.
Result<> CheckRegistration(const RegistrationRequest& request);
// The same of a plugin in the plugins' registry, which speaks several versions.
Result<> CheckRegistration(const std::string& resource, const std::vector<std::string>& versions);

// Removes the sockets in `dir`: plugins watch for that, and register again with the kubelet that has started.
void RemoveSockets(const std::string& dir);

}  // namespace keelson::kubelet::devices
