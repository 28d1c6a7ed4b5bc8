// The device manager (KEP-3573): which plugins offer devices, which containers have them, and what the node's status
// says about them.
//
// One mutex guards the state. Plugins are called without it, while the devices in question are reserved. Events of
// plugins only change the state: Run()'s thread writes checkpoints and calls callbacks.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cm/devices/checkpoint.h"
#include "kubelet/cm/devices/inventory.h"
#include "kubelet/cm/devices/plugin.h"
#include "kubelet/cm/devices/registration.h"
#include "kubelet/cm/devices/selection.h"
#include "kubelet/cm/topology/provider.h"
#include "kubelet/plugins/handler.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet::devices {

struct DeviceManagerOptions {
  std::string dir;                  // <root-dir>/device-plugins
  std::vector<NumaMask> node_sets;  // of the machine: MachineTopology::NodeSets()
  // Whether the container already runs, started by an earlier kubelet: it keeps its devices whatever plugins say
  // now. May be empty. Called without locks.
  std::function<bool(const std::string& uid, const std::string& container)> running;
  // NodeResources() has changed; the resource health of these pods has. Called on Run()'s thread; may be empty.
  std::function<void()> resources_changed;
  std::function<void(const std::set<std::string>& uids)> health_changed;
  PluginDialer dial = DialPlugin;
};

class DeviceManager : public ResourceProvider, public PluginHandler {  // thread safe
 public:
  // Reads the checkpoint.
  explicit DeviceManager(DeviceManagerOptions options, Clock& clock = Clock::Real());
  ~DeviceManager() override;

  // Serves registration until `stop`, and retries every second while it cannot.
  Result<> Run(std::stop_token stop, const std::function<void()>& ready);
  // An error once serving registration has failed five times in a row.
  Result<> CheckServing() const;
  // Connects to the plugin on `socket` and watches its devices. It replaces the resource's plugin.
  Result<> Connect(const std::string& resource, const std::string& socket);

  // ResourceProvider
  TopologyHints Hints(const corev1::Pod& pod, const corev1::Container& container) override;
  TopologyHints PodHints(const corev1::Pod& pod) override;
  std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod, const corev1::Container& container,
                                            const TopologyHint& affinity) override;
  Result<> Configure(const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                     std::stop_token stop) override;
  void Release(const std::string& uid) override;
  std::set<std::string> Uids() const override;

  // PluginHandler, of type DevicePlugin
  Result<> Validate(const std::string& name, const std::string& endpoint,
                    const std::vector<std::string>& versions) override;
  Result<> Register(const std::string& name, const std::string& endpoint,
                    const std::vector<std::string>& versions, std::stop_token stop) override;
  void Deregister(const std::string& name, const std::string& endpoint) override;

  // Extended resources of plugins for the node's status, by name. Expired ones are zero.
  std::map<std::string, NodeResource> NodeResources() const;
  // True if there was no checkpoint: extended resources in an existing node's status are outdated.
  bool ShouldResetExtendedResources() const { return no_checkpoint_; }
  // Raises `allocatable` to at least what is in use, if the pod already has devices: it is not rejected because its
  // plugin has not registered again yet.
  void RaiseAllocatable(const std::string& uid, k8s::ResourceList& allocatable) const;
  std::vector<ResourceDevice> ContainerDevices(const std::string& uid, const std::string& container) const;
  std::vector<ResourceDevice> AllocatableDevices() const;  // healthy ones, in use or not
  // Sets allocatedResourcesStatus of the containers that have devices (KEP-4680).
  void FillResourceHealth(const std::string& uid, corev1::PodStatus& status) const;

 private:
  // Amounts of device plugins' resources, of those not zero.
  std::map<std::string, size_t> RequestsOf(const corev1::Container& container) const KEELSON_REQUIRES(mutex_);
  bool IsDeviceResource(const std::string& resource) const KEELSON_REQUIRES(mutex_);
  Ids Free(const std::string& resource, const Resource& state) const KEELSON_REQUIRES(mutex_);
  std::optional<std::vector<TopologyHint>> HintsFor(const std::string& resource, const Ids& allocated,
                                                    const Ids& reusable, size_t required) const
      KEELSON_REQUIRES(mutex_);

  struct Target;  // of an allocation: container, resource, node
  struct Reservation;
  Result<> AllocateAll(const corev1::Pod& pod, const corev1::Container& container,
                       const TopologyHint& affinity, std::stop_token stop);
  // Whether anything has been given that the container did not have.
  Result<bool> AllocateResource(const Target& target, std::stop_token stop);
  Result<std::optional<Reservation>> Reserve(const Target& target, std::stop_token stop);
  Result<> CheckHealth(const Target& target) const KEELSON_REQUIRES(mutex_);
  void Unreserve(const std::string& resource, const Ids& ids) KEELSON_REQUIRES(mutex_);
  Result<> PreStart(const std::string& uid, const std::string& container, const std::string& resource,
                    std::stop_token stop);

  Result<> Accept(const RegistrationRequest& request);
  void OnListed(const std::string& resource, uint64_t connection, DeviceMap devices);
  void OnGone(const std::string& resource, uint64_t connection, const Error& why);
  // False when the plugin has been replaced or is gone already.
  bool Disconnect(const std::string& resource, uint64_t connection) KEELSON_REQUIRES(mutex_);
  void Changed() KEELSON_REQUIRES(mutex_);
  // True when there is more to do than wait.
  bool Await(SteadyTime deadline, std::stop_token stop);
  void HandleChanges();
  Result<> WriteCheckpoint();
  std::string checkpoint_path() const { return options_.dir + "/kubelet_internal_checkpoint"; }

  const DeviceManagerOptions options_;
  Clock& clock_;
  std::atomic<int> failed_starts_ = 0;  // of serving registration, in a row
  std::stop_source calls_;              // ends calls to plugins when the manager ends
  bool no_checkpoint_ = false;

  mutable Mutex mutex_;
  CondVar changed_;
  Inventory inventory_ KEELSON_GUARDED_BY(mutex_);
  PodDevices pods_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, Ids> reserved_
      KEELSON_GUARDED_BY(mutex_);  // by resource: chosen, and the plugin is asked
  uint64_t connections_ KEELSON_GUARDED_BY(mutex_) = 0;
  // Work for Run(): plugins to disconnect, pods to report, whether anything changed.
  std::vector<std::shared_ptr<DevicePlugin>> dropped_ KEELSON_GUARDED_BY(mutex_);
  std::set<std::string> health_changed_ KEELSON_GUARDED_BY(mutex_);
  bool dirty_ KEELSON_GUARDED_BY(mutex_) = false;
  std::map<std::string, NodeResource> reported_;  // of Run()'s thread

  Mutex file_mutex_;  // held while writing, so that the last file is of the last state; before mutex_
  std::string written_ KEELSON_GUARDED_BY(file_mutex_);
};

}  // namespace keelson::kubelet::devices
