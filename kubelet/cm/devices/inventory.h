// The resources that device plugins have registered, and their devices. Not thread safe.
//
//   Connect --> List --> List ... --> Disconnect -- 5 min --> Expire
//      ^                                  |
//      +---------- again in time ---------+
//
// A resource is known from its first List. Without a connected plugin its devices count for capacity only and cannot
// be allocated. After a restart the resources of the checkpoint are known, without devices. An expired resource
// stays in the node's status with zero devices.
#pragma once

#include <memory>
#include <optional>

#include "kubelet/cm/devices/plugin.h"
#include "lib/base/clock.h"

namespace keelson::kubelet::devices {

inline constexpr std::chrono::minutes kStopGracePeriod{5};

struct Resource {
  std::shared_ptr<DevicePlugin> plugin;  // null: gone, or not back yet
  PluginOptions options;                 // of the latest plugin
  DeviceMap devices;                     // as listed last
  bool known = false;
  bool current = false;  // the plugin that listed them is still connected
  uint64_t connection = 0;
  std::optional<SteadyTime> gone_since;

  // Whether any device says which NUMA nodes it is near to.
  bool HasTopology() const;
  Ids Healthy() const;
};

class Inventory {
 public:
  void Restore(const Ids& resources, SteadyTime now);
  // Returns the plugin that is replaced, or null. `connection` is unique, and identifies the plugin in later calls.
  std::shared_ptr<DevicePlugin> Connect(const std::string& resource, uint64_t connection,
                                        std::shared_ptr<DevicePlugin> plugin, PluginOptions options);
  // Sets the devices. Returns those that are new or whose health differs; nullopt: the plugin was replaced.
  std::optional<Ids> List(const std::string& resource, uint64_t connection, DeviceMap devices);
  // Returns the plugin; null: it was replaced, or has disconnected already.
  std::shared_ptr<DevicePlugin> Disconnect(const std::string& resource, uint64_t connection, SteadyTime now);
  // Expires resources whose plugin is gone for kStopGracePeriod. Whether there was one.
  bool Expire(SteadyTime now);
  SteadyTime NextExpiry() const;

  const Resource* Find(const std::string& resource) const;  // null: not known
  // The connection of the resource's plugin, known or new, that serves on `socket`; 0: none.
  uint64_t ConnectionOf(const std::string& resource, const std::string& socket) const;
  std::map<std::string, NodeResource> NodeResources() const;
  std::map<std::string, Ids> HealthyDevices() const;  // of each known resource
  std::vector<ResourceDevice> AllocatableDevices() const;
  // Forgets all connections, and returns the plugins for the caller to destroy.
  std::vector<std::shared_ptr<DevicePlugin>> Clear();

 private:
  std::map<std::string, Resource> resources_;
  Ids expired_;
};

}  // namespace keelson::kubelet::devices
