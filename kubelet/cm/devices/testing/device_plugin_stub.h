// For tests: a device plugin in this process that speaks the real protocol.
#pragma once

#include <memory>
#include <string>

#include "kubelet/cm/devices/device.h"

namespace keelson::kubelet::devices {

// Serves gRPC on a socket in the plugin directory. Prefers the last available devices; PreStartContainer fails for
// "broken".
class DevicePluginStub {
 public:
  explicit DevicePluginStub(std::string socket);
  ~DevicePluginStub();  // as if it died

  void SetDevices(DeviceMap devices);  // to watchers too
  // Registers with the kubelet on `kubelet_socket`. Returns the error's message; empty: registered.
  std::string Register(const std::string& kubelet_socket, const std::string& resource,
                       const std::string& version = "v1beta1");
  int allocations() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::devices
