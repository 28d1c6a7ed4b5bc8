// What is done with the plugins of one type (DevicePlugin, CSIPlugin, DRAPlugin) that appear on the node.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

class PluginHandler {  // thread safe; calls about one socket come one at a time
 public:
  virtual ~PluginHandler() = default;
  // Whether a plugin of this name that speaks these versions can be registered. `endpoint` is the socket that
  // it serves on.
  virtual Result<> Validate(const std::string& name, const std::string& endpoint,
                            const std::vector<std::string>& versions) = 0;
  // Takes the plugin into use, in place of one of that name and endpoint.
  virtual Result<> Register(const std::string& name, const std::string& endpoint,
                            const std::vector<std::string>& versions, std::stop_token stop) = 0;
  // The plugin has gone from this endpoint. Nothing to do when another one has its place.
  virtual void Deregister(const std::string& name, const std::string& endpoint) = 0;
};

}  // namespace keelson::kubelet
