// What a node gives to single containers and not to all alike - CPUs, memory near to them, devices - as the
// settings want it managed: one face of the managers towards the rest of the kubelet.
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

class NodeResources {  // thread safe
 public:
  using PodPtr = podresources::Source::PodPtr;
  struct Kubelet {  // what is needed of it; all thread safe
    std::function<std::vector<PodPtr>()> active;
    std::function<PodPtr(const std::string& ns, const std::string& name)> find;
    std::function<std::shared_ptr<const PodRuntimeStatus>(const std::string& uid)> runtime;  // as last seen
    std::function<void()> node_changed;                       // ExtendedResources() are others
    std::function<void(const std::string& uid)> pod_changed;  // the health of its devices is another
  };
  // kInvalid: settings that contradict each other or the machine, or checkpoints that do not fit them.
  static Result<std::unique_ptr<NodeResources>> Make(const Settings& settings,
                                                     const Reservations& reservations,
                                                     cri::RuntimeService& runtime,
                                                     Clock& clock = Clock::Real());
  // The same on another machine than this one.
  static Result<std::unique_ptr<NodeResources>> Make(const Settings& settings,
                                                     const Reservations& reservations,
                                                     cri::RuntimeService& runtime, MachineTopology machine,
                                                     int64_t memory_bytes, Clock& clock);
  ~NodeResources();
  void Connect(Kubelet kubelet);  // once, before all below
  void AddServices(ServiceGroup& group);

  // Everything that the pod's containers ask for, or nothing and why not.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod);
  Result<> Configure(const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                     std::stop_token stop);
  void Release(const std::string& uid);
  void Retain(const std::set<std::string>& uids);  // releases what other pods have

  bool static_cpus() const { return cpus_ != nullptr; }
  bool static_memory() const { return memory_ != nullptr; }
  std::map<std::string, devices::NodeResource> ExtendedResources() const;
  Result<> CheckRegistration() const { return devices_.CheckServing(); }
  void FillResourceHealth(const std::string& uid, corev1::PodStatus& status) const;
  // What device plugins offer, and no less than what is in use: the plugin of a pod that has devices may not
  // be back yet.
  void AddDevices(const std::string& uid, k8s::ResourceList& allocatable) const;

 private:
  NodeResources(const Settings& settings, cri::RuntimeService& runtime, MachineTopology machine,
                Clock& clock);
  CpuManager::Runtime CpuRuntime();

  const std::string root_;
  cri::RuntimeService& runtime_;
  const MachineTopology machine_;
  Clock& clock_;
  Kubelet kubelet_;
  std::unique_ptr<CpuManager> cpus_;       // null: policy none
  std::unique_ptr<MemoryManager> memory_;  // null: policy None
  devices::DeviceManager devices_;
  std::unique_ptr<TopologyManager> topology_;
  PluginWatcher plugins_;
  std::unique_ptr<podresources::ManagersSource> source_;
  std::unique_ptr<podresources::SourceLister> lister_;
};

}  // namespace keelson::kubelet
