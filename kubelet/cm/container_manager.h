// Gives the node's CPUs, memory near to them and devices to single containers, as the settings want it: the
// CPU, memory, device and topology managers behind one interface, with the services that speak to plugins.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cm/cpu/cpu_manager.h"
#include "kubelet/cm/devices/manager.h"
#include "kubelet/cm/memory/memory_manager.h"
#include "kubelet/cm/topology/topology_manager.h"
#include "kubelet/config/settings.h"
#include "kubelet/container/runtime_status.h"
#include "kubelet/node/machine.h"
#include "kubelet/plugins/watcher.h"
#include "kubelet/podresources/managers.h"
#include "lib/base/clock.h"
#include "lib/base/service_group.h"

namespace keelson::kubelet {

class ContainerManager {  // thread safe
 public:
  using PodPtr = podresources::Source::PodPtr;
  struct Callbacks {  // into the kubelet; all thread safe
    std::function<std::vector<PodPtr>()> active_pods;
    std::function<PodPtr(const std::string& ns, const std::string& name)> find_pod;  // null: there is none
    // As last seen; null when nothing has been seen.
    std::function<std::shared_ptr<const PodRuntimeStatus>(const std::string& uid)> runtime_status;
    std::function<void()> node_resources_changed;                       // DevicePluginResources() differ
    std::function<void(const std::string& uid)> device_health_changed;  // of a device that the pod has
    PluginWatcher::Handlers plugin_handlers = {};                       // of other types than DevicePlugin
  };
  // kInvalid: settings that contradict each other or the machine, or checkpoints that do not fit them. The
  // runtime and the clock have to outlive it.
  static Result<std::unique_ptr<ContainerManager>> Make(const Settings& settings,
                                                        const Reservations& reservations,
                                                        cri::RuntimeService& runtime,
                                                        Clock& clock = Clock::Real());
  // The same for a machine that is given instead of this one.
  static Result<std::unique_ptr<ContainerManager>> Make(const Settings& settings,
                                                        const Reservations& reservations,
                                                        cri::RuntimeService& runtime, MachineTopology machine,
                                                        int64_t memory_bytes, Clock& clock);
  ~ContainerManager();
  // Once, before any call below.
  void Connect(Callbacks callbacks);
  // Adds device-plugins, plugin-registry, pod-resources and, with the static policy, cpu-manager. The first
  // three may fail without taking the kubelet down.
  void AddServices(ServiceGroup& group);

  // Allocates what the pod's containers ask for: all of it, or nothing, and returns why not.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod);
  // Adds what Admit allocated for the container to the runtime's request. May call device plugins.
  Result<> ConfigureContainer(const corev1::Pod& pod, const corev1::Container& container,
                              cri::ContainerConfig& config, std::stop_token stop);
  // Releases what the pod has. Does nothing for unknown UIDs.
  void Release(const std::string& uid);
  // Releases what all pods but `uids` have.
  void RemoveStaleState(const std::set<std::string>& uids);

  bool static_cpus() const { return cpus_ != nullptr; }      // the static CPU manager policy
  bool static_memory() const { return memory_ != nullptr; }  // the Static memory manager policy
  // What device plugins offer, by resource name: for the node's status.
  std::map<std::string, devices::NodeResource> DevicePluginResources() const;
  // An error while the registration socket of device plugins does not serve.
  Result<> CheckRegistration() const { return devices_.CheckServing(); }
  // Sets allocatedResourcesStatus of the containers in `status`.
  void UpdateResourceHealth(const std::string& uid, corev1::PodStatus& status) const;
  // Sets in `allocatable` what device plugins offer, and no less than what the pod already has: after a restart
  // its plugin may not have registered yet.
  void UpdatePluginResources(const std::string& uid, k8s::ResourceList& allocatable) const;

 private:
  ContainerManager(const Settings& settings, cri::RuntimeService& runtime, MachineTopology machine,
                   Clock& clock);
  CpuManager::Runtime CpuRuntime();

  const std::string root_;
  cri::RuntimeService& runtime_;
  const MachineTopology machine_;
  Clock& clock_;
  Callbacks callbacks_;
  std::unique_ptr<CpuManager> cpus_;       // null: policy none
  std::unique_ptr<MemoryManager> memory_;  // null: policy None
  devices::DeviceManager devices_;
  std::unique_ptr<TopologyManager> topology_;
  std::unique_ptr<PluginWatcher> plugins_;
  std::unique_ptr<podresources::ManagersSource> source_;
  std::unique_ptr<podresources::SourceLister> lister_;
};

}  // namespace keelson::kubelet
