// Handles the plugins of one type (DevicePlugin, CSIPlugin, DRAPlugin) that the plugin watcher finds.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

class PluginHandler {  // thread safe; calls about one socket come one at a time
 public:
  virtual ~PluginHandler() = default;
  // An error if a plugin with this name and these versions cannot be registered. `endpoint`: its socket.
  virtual Result<> Validate(const std::string& name, const std::string& endpoint,
                            const std::vector<std::string>& versions) = 0;
  // Uses the plugin from now on; it replaces one of that name and endpoint.
  virtual Result<> Register(const std::string& name, const std::string& endpoint,
                            const std::vector<std::string>& versions, std::stop_token stop) = 0;
  // The plugin is gone from this endpoint. Does nothing if another one has replaced it.
  virtual void Deregister(const std::string& name, const std::string& endpoint) = 0;
};

}  // namespace keelson::kubelet
