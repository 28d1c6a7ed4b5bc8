// For tests: a device plugin as others write them.
#pragma once

#include <memory>
#include <string>

#include "kubelet/cm/devices/device.h"

namespace keelson::kubelet::devices {

// gRPC on a socket in the plugins' folder. Prefers the last of what is there; cannot set up "broken".
class DevicePluginStub {
 public:
  explicit DevicePluginStub(std::string socket);
  ~DevicePluginStub();  // as when it dies

  void SetDevices(DeviceMap devices);  // tells who watches
  // Asks the kubelet that serves on `kubelet_socket` to take it; the answer's text, empty when it did.
  std::string Register(const std::string& kubelet_socket, const std::string& resource,
                       const std::string& version = "v1beta1");
  int allocations() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::kubelet::devices
