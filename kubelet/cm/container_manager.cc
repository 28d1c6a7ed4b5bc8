#include "kubelet/cm/container_manager.h"

#include "kubelet/podresources/server.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

namespace {

int64_t AmountIn(const std::map<std::string, std::string>& amounts, const std::string& name, bool milli) {
  auto it = amounts.find(name);
  auto amount = it == amounts.end() ? Result<api::Amount>(api::Amount()) : api::Amount::Parse(it->second);
  if (!amount) return 0;  // refused when the settings were read
  return milli ? amount->MilliValue() : amount->Value();
}

Result<> CheckReservedCpus(const std::string& list, const MachineTopology& machine) {
  auto cpus = CpuSet::Parse(list);
  if (!cpus) return cpus.error().Wrap("unable to parse reserved CPU list");
  for (int cpu : *cpus) {
    if (!machine.cpus.count(cpu)) {
      return Error(Code::kInvalid, "invalid cpuset \"" + list + "\" specified by --reserved-cpus");
    }
  }
  return {};
}

Result<CpuManagerOptions> CpuOptions(const Settings& settings, const Reservations& reservations) {
  CpuManagerOptions out;
  out.state_file = settings.flags.root_dir + "/cpu_manager_state";
  out.reconcile_period = settings.config.cpu_manager_reconcile_period;
  KEELSON_ASSIGN_OR_RETURN(out.reserved, CpuSet::Parse(settings.config.reserved_system_cpus));
  int64_t milli = AmountIn(reservations.system, "cpu", true) + AmountIn(reservations.kube, "cpu", true);
  out.reserved_count = static_cast<int>((milli + 999) / 1000);
  KEELSON_RETURN_IF_ERROR(ParseCpuManagerOptions(settings.config.cpu_manager_policy_options, out));
  return out;
}

Result<MemoryManagerOptions> MemoryOptions(const Settings& settings, const Reservations& reservations,
                                           int64_t memory_bytes) {
  MemoryManagerOptions out;
  out.state_file = settings.flags.root_dir + "/memory_manager_state";
  for (const MemoryReservation& reservation : settings.config.reserved_memory) {
    for (const auto& [type, amount] : reservation.limits) {
      out.reserved[reservation.numa_node][type] += AmountIn(reservation.limits, type, false);
    }
  }
  for (const auto* amounts : {&reservations.system, &reservations.kube}) {
    for (const auto& [type, amount] : *amounts) {
      if (type == "memory" || k8s::IsHugePages(type)) {
        out.node_reserved[type] += AmountIn(*amounts, type, false);
      }
    }
  }
  out.node_reserved["memory"] += ThresholdOf(reservations.eviction_hard, "memory.available", memory_bytes);
  return out;
}

ServiceGroup::Service OptionalService(const std::string& name,
                                      std::function<Result<>(std::stop_token, ServiceGroup::Ready)> run) {
  // Pods run without it, so the kubelet does too.
  return {
      name, {}, [name, run = std::move(run)](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
        if (auto done = run(stop, ready); !done && !stop.stop_requested()) {
          log::Error("A service for plugins has failed", {{"service", name}, {"err", done.error()}});
          ready();
          Mutex mutex;
          CondVar cv;
          MutexLock lock(mutex);
          cv.wait(mutex, stop, [] { return false; });
        }
        return {};
      }};
}

}  // namespace

ContainerManager::ContainerManager(const Settings& settings, cri::RuntimeService& runtime,
                                   MachineTopology machine, Clock& clock)
    : root_(settings.flags.root_dir),
      runtime_(runtime),
      machine_(std::move(machine)),
      clock_(clock),
      devices_({root_ + "/device-plugins", machine_.NodeSets(),
                [this](const std::string& uid, const std::string& container) {
                  auto status = callbacks_.runtime_status(uid);
                  const ContainerRecord* record = status ? status->Latest(container) : nullptr;
                  return record && record->state == cri::ContainerState::kRunning;
                },
                [this] { callbacks_.node_resources_changed(); },
                [this](const std::set<std::string>& uids) {
                  for (const std::string& uid : uids) callbacks_.device_health_changed(uid);
                }},
               clock) {}

ContainerManager::~ContainerManager() = default;

Result<std::unique_ptr<ContainerManager>> ContainerManager::Make(const Settings& settings,
                                                                 const Reservations& reservations,
                                                                 cri::RuntimeService& runtime, Clock& clock) {
  const int64_t memory_bytes = ReadMachine(settings.flags.root_dir).memory_bytes;
  KEELSON_ASSIGN_OR_RETURN(MachineTopology machine, MachineTopology::Read(memory_bytes));
  return Make(settings, reservations, runtime, std::move(machine), memory_bytes, clock);
}

Result<std::unique_ptr<ContainerManager>> ContainerManager::Make(const Settings& settings,
                                                                 const Reservations& reservations,
                                                                 cri::RuntimeService& runtime,
                                                                 MachineTopology machine,
                                                                 int64_t memory_bytes, Clock& clock) {
  const KubeletConfig& config = settings.config;
  KEELSON_RETURN_IF_ERROR(CheckReservedCpus(config.reserved_system_cpus, machine));
  std::unique_ptr<ContainerManager> out(new ContainerManager(settings, runtime, std::move(machine), clock));
  std::vector<ResourceProvider*> providers;
  if (config.cpu_manager_policy == "static") {
    KEELSON_ASSIGN_OR_RETURN(CpuManagerOptions options, CpuOptions(settings, reservations));
    KEELSON_ASSIGN_OR_RETURN(out->cpus_, CpuManager::Make(out->machine_, options, clock));
    providers.push_back(out->cpus_.get());
  }
  if (config.memory_manager_policy == "Static") {
    KEELSON_ASSIGN_OR_RETURN(MemoryManagerOptions options,
                             MemoryOptions(settings, reservations, memory_bytes));
    KEELSON_ASSIGN_OR_RETURN(out->memory_, MemoryManager::Make(out->machine_, options));
    providers.push_back(out->memory_.get());
  }
  providers.push_back(&out->devices_);
  KEELSON_ASSIGN_OR_RETURN(TopologyOptions topology,
                           ParseTopologyOptions(config.topology_manager_policy, config.topology_manager_scope,
                                                config.topology_manager_policy_options));
  KEELSON_ASSIGN_OR_RETURN(out->topology_,
                           TopologyManager::Make(out->machine_, topology, std::move(providers)));
  return out;
}

void ContainerManager::Connect(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  PluginWatcher::Handlers handlers = callbacks_.plugin_handlers;
  handlers["DevicePlugin"] = &devices_;
  plugins_ = std::make_unique<PluginWatcher>(root_ + "/plugins_registry", std::move(handlers), clock_);
  source_ = std::make_unique<podresources::ManagersSource>(
      podresources::Managers{devices_, cpus_.get(), memory_.get()},
      podresources::ManagersSource::Pods{callbacks_.active_pods, callbacks_.find_pod});
  lister_ = std::make_unique<podresources::SourceLister>(*source_);
}

CpuManager::Runtime ContainerManager::CpuRuntime() {
  CpuManager::Runtime out;
  out.containers = [this] {
    std::vector<CpuManager::Running> running;
    for (const PodPtr& pod : callbacks_.active_pods()) {
      auto status = callbacks_.runtime_status(pod->metadata().uid());
      if (!status) continue;
      for (const ContainerRecord& record : status->containers) {
        if (record.state == cri::ContainerState::kRunning) {
          running.push_back({pod->metadata().uid(), record.name, record.id});
        }
      }
    }
    return running;
  };
  out.set_cpus = [this](const std::string& id, const CpuSet& cpus, std::stop_token stop) {
    cri::LinuxResources resources;
    resources.cpuset_cpus = cpus.Format();
    return runtime_.UpdateContainerResources(id, resources, stop);
  };
  return out;
}

void ContainerManager::AddServices(ServiceGroup& group) {
  group.Add(OptionalService("device-plugins", [this](std::stop_token stop, ServiceGroup::Ready ready) {
    return devices_.Run(stop, ready);
  }));
  group.Add(OptionalService("plugin-registry", [this](std::stop_token stop, ServiceGroup::Ready ready) {
    return plugins_->Run(stop, ready);
  }));
  group.Add(OptionalService("pod-resources", [this](std::stop_token stop, ServiceGroup::Ready ready) {
    podresources::ServerOptions options;
    options.dir = root_ + "/pod-resources";
    return podresources::RunServer(options, *lister_, stop, ready, clock_);
  }));
  if (!cpus_) return;
  group.Add({"cpu-manager", {}, [this](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               ready();
               cpus_->Run(CpuRuntime(), stop);
               return {};
             }});
}

std::optional<k8s::AdmitFailure> ContainerManager::Admit(const corev1::Pod& pod) {
  return topology_->Admit(pod);
}

Result<> ContainerManager::ConfigureContainer(const corev1::Pod& pod, const corev1::Container& container,
                                              cri::ContainerConfig& config, std::stop_token stop) {
  return topology_->Configure(pod, container, config, stop);
}

void ContainerManager::Release(const std::string& uid) { topology_->Release(uid); }
void ContainerManager::RemoveStaleState(const std::set<std::string>& uids) {
  topology_->RemoveStaleState(uids);
}

std::map<std::string, devices::NodeResource> ContainerManager::DevicePluginResources() const {
  return devices_.NodeResources();
}

void ContainerManager::UpdateResourceHealth(const std::string& uid, corev1::PodStatus& status) const {
  devices_.FillResourceHealth(uid, status);
}

void ContainerManager::UpdatePluginResources(const std::string& uid, k8s::ResourceList& allocatable) const {
  for (const auto& [name, amount] : devices_.NodeResources()) {
    allocatable[name] = api::Amount::FromInt(amount.allocatable);
  }
  devices_.RaiseAllocatable(uid, allocatable);
}

}  // namespace keelson::kubelet
