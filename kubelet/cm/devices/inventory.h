// The resources that device plugins have brought, and their devices. Not thread safe; time is told.
//
//   Connect --> List --> List ... --> Disconnect -- 5 min --> Expire
//      ^                                  |
//      +---------- again in time ---------+
//
// A resource is known from its first List. Without a plugin none of its devices can be given: they count for
// capacity only. A kubelet that starts knows the resources that its checkpoint names, without devices. What
// expires stays a resource of the node, of which there are none.
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
  bool current = false;  // a plugin has been connected without a break since it listed them
  uint64_t connection = 0;
  std::optional<SteadyTime> gone_since;

  // Any device that says where it is makes the resource one that is aligned.
  bool HasTopology() const;
  Ids Healthy() const;
};

class Inventory {
 public:
  void Restore(const Ids& resources, SteadyTime now);
  // The plugin that was there before, if any. `connection` tells plugins of one resource apart.
  std::shared_ptr<DevicePlugin> Connect(const std::string& resource, uint64_t connection,
                                        std::shared_ptr<DevicePlugin> plugin, PluginOptions options);
  // Devices that are new or of other health than before; nullopt when the plugin has been replaced.
  std::optional<Ids> List(const std::string& resource, uint64_t connection, DeviceMap devices);
  // The plugin; null when it has been replaced or is gone already.
  std::shared_ptr<DevicePlugin> Disconnect(const std::string& resource, uint64_t connection, SteadyTime now);
  bool Expire(SteadyTime now);  // true if any did
  SteadyTime NextExpiry() const;

  const Resource* Find(const std::string& resource) const;  // known ones; else null
  // Of whichever known or new resource, served on `socket`; 0 when there is none.
  uint64_t ConnectionOf(const std::string& resource, const std::string& socket) const;
  std::map<std::string, NodeResource> NodeResources() const;
  std::map<std::string, Ids> HealthyDevices() const;  // of each known resource
  std::vector<ResourceDevice> AllocatableDevices() const;
  // Ends all connections: plugins for the caller to destroy.
  std::vector<std::shared_ptr<DevicePlugin>> Clear();

 private:
  std::map<std::string, Resource> resources_;
  Ids expired_;
};

}  // namespace keelson::kubelet::devices
