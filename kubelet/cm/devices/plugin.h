// A device plugin as the device manager calls it (device plugin API v1beta1).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "kubelet/cm/devices/device.h"
#include "lib/base/error.h"

namespace keelson::kubelet::devices {

class DevicePlugin {  // thread safe
 public:
  struct Events {
    std::function<void(DeviceMap devices)> listed;  // all devices: first, and after each change
    std::function<void(const Error& why)> gone;     // the last event
  };
  // Ends the watch: no event comes afterwards. Not to be called from an event.
  virtual ~DevicePlugin() = default;
  virtual const std::string& socket() const = 0;
  virtual Result<PluginOptions> Options(std::stop_token stop) = 0;
  // Once. Events come one at a time, on a thread that is not the caller's; they do not block.
  virtual void Watch(Events events) = 0;
  // GetPreferredAllocation: `size` devices of `available`, which contain `must_include`.
  virtual Result<Ids> PreferredAllocation(const Ids& available, const Ids& must_include, size_t size,
                                          std::stop_token stop) = 0;
  virtual Result<Grant> Allocate(const Ids& ids, std::stop_token stop) = 0;
  // PreStartContainer. kTimeout after 30 s.
  virtual Result<> PreStart(const Ids& ids, std::stop_token stop) = 0;
};

// Connects to the plugin's socket; kTimeout after 10 s.
using PluginDialer =
    std::function<Result<std::unique_ptr<DevicePlugin>>(const std::string& socket, std::stop_token stop)>;
Result<std::unique_ptr<DevicePlugin>> DialPlugin(const std::string& socket, std::stop_token stop);

}  // namespace keelson::kubelet::devices
