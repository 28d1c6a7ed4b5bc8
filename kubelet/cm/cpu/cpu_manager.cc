#include "kubelet/cm/cpu/cpu_manager.h"

#include <algorithm>

#include "kubelet/cm/topology/alignment.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr char kPolicy[] = "static";

// CPUs of its own that a container asks for: a whole number, in a Guaranteed pod.
int Wanted(const corev1::Pod& pod, const corev1::Container& container) {
  if (k8s::QosClass(pod) != k8s::kGuaranteed) return 0;
  auto it = container.resources().requests().find("cpu");
  if (it == container.resources().requests().end()) return 0;
  int64_t milli = api::Amount::Of(it->second).MilliValue();
  return milli % 1000 == 0 ? static_cast<int>(milli / 1000) : 0;
}

// As the pod's requests add up: sidecars stay, other init containers make room for what comes after them.
int WantedByPod(const corev1::Pod& pod) {
  int sidecars = 0, init_peak = 0, apps = 0;
  for (const auto& container : pod.spec().init_containers()) {
    int wanted = Wanted(pod, container);
    init_peak = std::max(init_peak, sidecars + wanted);
    if (k8s::IsSidecar(container)) sidecars += wanted;
  }
  for (const auto& container : pod.spec().containers()) apps += Wanted(pod, container);
  return std::max(init_peak, sidecars + apps);
}

metrics::Value& PinningRequests() {
  return metrics::Counter("kubelet_cpu_manager_pinning_requests_total",
                          "The number of cpu core allocations which required pinning.")
      .With();
}
metrics::Value& PinningErrors() {
  return metrics::Counter("kubelet_cpu_manager_pinning_errors_total",
                          "The number of cpu core allocations which required pinning failed.")
      .With();
}

k8s::AdmitFailure Unexpected(const std::string& why) {
  return {"UnexpectedAdmissionError", "Allocate failed due to " + why + ", which is unexpected"};
}

}  // namespace

Result<> ParseCpuManagerOptions(const std::map<std::string, std::string>& from, CpuManagerOptions& to) {
  const std::map<std::string, bool*> known = {{"full-pcpus-only", &to.full_cores_only},
                                              {"distribute-cpus-across-numa", &to.assign.distribute_numa},
                                              {"align-by-socket", &to.align_by_socket},
                                              {"distribute-cpus-across-cores", &to.assign.spread_cores},
                                              {"strict-cpu-reservation", &to.strict_reservation},
                                              {"prefer-align-cpus-by-uncorecache", &to.assign.align_cache}};
  for (const auto& [name, value] : from) {
    auto it = known.find(name);
    if (it == known.end()) {
      return Error(Code::kInvalid, "unknown CPU Manager Policy option: \"" + name + "\"");
    }
    if (value != "true" && value != "false") {
      return Error(Code::kInvalid,
                   "bad value for option \"" + name + "\": \"" + value + "\" is not a boolean");
    }
    *it->second = value == "true";
  }
  if (to.full_cores_only && to.assign.spread_cores) {
    return Error(Code::kInvalid,
                 "static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at "
                 "the same time");
  }
  if (to.assign.distribute_numa && to.assign.align_cache) {
    return Error(Code::kInvalid,
                 "static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can "
                 "not be used at the same time");
  }
  to.assign.whole_cores = to.full_cores_only;
  return {};
}

Result<std::unique_ptr<CpuManager>> CpuManager::Make(const MachineTopology& machine,
                                                     const CpuManagerOptions& given, Clock& clock) {
  CpuManagerOptions options = given;
  CpuSet all = machine.All();
  if (options.reserved.empty() && options.reserved_count <= 0) {
    return Error(Code::kInvalid, "[cpumanager] unable to determine reserved CPU resources for static policy");
  }
  if (options.reserved.empty()) {
    auto chosen = AssignCpus(machine, all, options.reserved_count, {});
    if (!chosen) return chosen.error().Wrap("[cpumanager] unable to reserve the required amount of CPUs");
    options.reserved = *chosen;
  }
  if (!all.ContainsAll(options.reserved)) {
    return Error(Code::kInvalid, "[cpumanager] unable to reserve the required amount of CPUs (size of " +
                                     options.reserved.Intersection(all).Format() + " did not equal " +
                                     std::to_string(options.reserved.size()) + ")");
  }
  CpuAssignments nothing{options.strict_reservation ? all.Minus(options.reserved) : all, {}};
  auto state = LoadCpuAssignments(options.state_file, kPolicy, nothing);
  std::string problem =
      state ? state->Problem(all, options.reserved, options.strict_reservation) : state.error().message();
  if (!problem.empty()) {
    return Error(Code::kInvalid,
                 "could not restore state from checkpoint: " + problem +
                     ", please drain this node and delete the CPU manager checkpoint file \"" +
                     options.state_file + "\" before restarting Kubelet");
  }
  // Nothing is promised yet that the file does not say: on a full disk the kubelet has to start, to make
  // room.
  if (auto saved = SaveCpuAssignments(options.state_file, kPolicy, *state); !saved) {
    log::Warn("Cannot save which CPUs are whose", {{"err", saved.error()}});
  }
  return std::unique_ptr<CpuManager>(new CpuManager(machine, options, std::move(*state), clock));
}

CpuSet CpuManager::Available() const { return state_.shared.Minus(options_.reserved); }
CpuSet CpuManager::Allocatable() const { return machine_.All().Minus(options_.reserved); }

// CPUs of init containers that have ended by the time the container runs.
CpuSet CpuManager::Reusable(const corev1::Pod& pod, const std::string& except) const {
  auto entry = state_.own.find(pod.metadata().uid());
  if (entry == state_.own.end()) return {};
  CpuSet out, in_use;
  for (const auto& [name, cpus] : entry->second) {
    if (name == except) continue;
    const auto& init = pod.spec().init_containers();
    bool ends = std::any_of(init.begin(), init.end(), [&name = name](const auto& item) {
      return item.name() == name && !k8s::IsSidecar(item);
    });
    (ends ? out : in_use).Add(cpus);
  }
  return out.Minus(in_use);
}

TopologyHints CpuManager::HintsFor(const CpuSet& available, const CpuSet& reusable, int count) const {
  size_t least = machine_.nodes.size();
  std::vector<TopologyHint> hints;
  for (const NumaMask& mask : machine_.NodeSets()) {
    CpuSet inside = machine_.OfNodes(mask);
    if (inside.size() >= count) least = std::min(least, mask.count());
    if (!inside.ContainsAll(reusable)) continue;
    if (inside.Intersection(available.Union(reusable)).size() < count) continue;
    hints.push_back({mask, false});
  }
  for (TopologyHint& hint : hints) {
    bool one_socket = options_.align_by_socket &&
                      machine_.Ids(&CpuPlace::socket, machine_.OfNodes(*hint.nodes)).size() == 1;
    hint.preferred = hint.nodes->count() == least || one_socket;
  }
  return {{"cpu", std::move(hints)}};
}

TopologyHints CpuManager::Hints(const corev1::Pod& pod, const corev1::Container& container) {
  int count = Wanted(pod, container);
  if (count == 0) return {};
  MutexLock lock(mutex_);
  auto entry = state_.own.find(pod.metadata().uid());
  if (entry != state_.own.end() && entry->second.count(container.name())) {
    return HintsFor(entry->second.at(container.name()), {}, count);
  }
  return HintsFor(Available(), Reusable(pod, container.name()), count);
}

TopologyHints CpuManager::PodHints(const corev1::Pod& pod) {
  int count = WantedByPod(pod);
  if (count == 0) return {};
  MutexLock lock(mutex_);
  CpuSet own;
  if (auto entry = state_.own.find(pod.metadata().uid()); entry != state_.own.end()) {
    for (const auto& [name, cpus] : entry->second) own.Add(cpus);
  }
  if (own.size() >= count) return HintsFor(own, {}, count);
  return HintsFor(Available(), own, count);
}

std::optional<k8s::AdmitFailure> CpuManager::CheckCores(int count, const CpuSet& free) const {
  int per_core = machine_.CpusPerCore();
  if (!options_.full_cores_only || per_core == 0) return std::nullopt;
  if (count % per_core != 0) {
    return k8s::AdmitFailure{"SMTAlignmentError",
                             "SMT Alignment Error: requested " + std::to_string(count) +
                                 " cpus not multiple cpus per core = " + std::to_string(per_core)};
  }
  int physical = 0;
  for (int core : machine_.Ids(&CpuPlace::core, free)) {
    CpuSet cpus = machine_.Of(&CpuPlace::core, core);
    if (free.ContainsAll(cpus)) physical += cpus.size();
  }
  if (count <= physical) return std::nullopt;
  return k8s::AdmitFailure{"SMTAlignmentError",
                           "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = " +
                               std::to_string(physical) + ", requested CPUs = " + std::to_string(count) +
                               ", CPUs per core = " + std::to_string(per_core)};
}

std::optional<k8s::AdmitFailure> CpuManager::Allocate(const corev1::Pod& pod,
                                                      const corev1::Container& container,
                                                      const TopologyHint& affinity) {
  int count = Wanted(pod, container);
  if (count == 0) return std::nullopt;
  MutexLock lock(mutex_);
  auto entry = state_.own.find(pod.metadata().uid());
  if (entry != state_.own.end() && entry->second.count(container.name())) return std::nullopt;
  PinningRequests().Increment();
  auto failure = Pin(pod, container, affinity, count);
  if (failure) PinningErrors().Increment();
  if (options_.full_cores_only) CountAlignment("container", "physical_cpu", !failure);
  return failure;
}

std::optional<k8s::AdmitFailure> CpuManager::Pin(const corev1::Pod& pod, const corev1::Container& container,
                                                 const TopologyHint& affinity, int count) {
  CpuSet reusable = Reusable(pod, container.name());
  CpuSet free = Available().Union(reusable);
  if (auto failure = CheckCores(count, free)) return failure;
  CpuSet chosen;
  if (affinity.nodes) {
    CpuSet near = free.Intersection(machine_.OfNodes(*affinity.nodes));
    auto first = AssignCpus(machine_, near, std::min(count, near.size()), options_.assign);
    if (first) chosen = *first;
  }
  if (chosen.size() < count) {
    auto rest = AssignCpus(machine_, free.Minus(chosen), count - chosen.size(), options_.assign);
    if (!rest) return Unexpected(rest.error().message());
    chosen.Add(*rest);
  }
  CpuAssignments next = state_;
  next.shared = next.shared.Minus(chosen);
  next.own[pod.metadata().uid()][container.name()] = chosen;
  if (auto saved = Commit(std::move(next)); !saved) return Unexpected(saved.error().message());
  if (machine_.Ids(&CpuPlace::cache, chosen).size() == 1) CountAlignment("container", "uncore_cache", true);
  log::Info("CPUs given to a container", {{"pod", pod.metadata().name()},
                                          {"namespace", pod.metadata().namespace_()},
                                          {"container", container.name()},
                                          {"cpus", chosen.Format()}});
  return std::nullopt;
}

void CpuManager::UpdateCpuPoolMetrics() const {
  CpuSet own;
  for (const auto& [uid, containers] : state_.own) {
    for (const auto& [name, cpus] : containers) own.Add(cpus);
  }
  metrics::Gauge("kubelet_cpu_manager_exclusive_cpu_allocation_count",
                 "The total number of CPUs exclusively allocated to containers running on this node")
      .With()
      .Set(own.size());
  metrics::Gauge("kubelet_cpu_manager_shared_pool_size_millicores",
                 "The size of the shared CPU pool for non-guaranteed QoS pods, in millicores.")
      .With()
      .Set(Available().size() * 1000);
  metrics::Family& by_node = metrics::Gauge("kubelet_cpu_manager_allocation_per_numa",
                                            "Number of CPUs allocated per NUMA node", {"numa_node"});
  for (const auto& [id, node] : machine_.nodes) {
    by_node.With({std::to_string(id)}).Set(own.Intersection(node.cpus).size());
  }
}

Result<> CpuManager::Commit(CpuAssignments next) {
  KEELSON_RETURN_IF_ERROR(SaveCpuAssignments(options_.state_file, kPolicy, next));
  state_ = std::move(next);
  UpdateCpuPoolMetrics();
  ++changes_;
  changed_.notify_all();
  return {};
}

Result<> CpuManager::Configure(const corev1::Pod& pod, const corev1::Container& container,
                               cri::ContainerConfig& config, std::stop_token) {
  CpuSet own = Exclusive(pod.metadata().uid(), container.name());
  if (!own.empty()) {
    config.resources.cpuset_cpus = own.Format();
    config.resources.cpu_quota = -1;  // they are its own: no throttling
    return {};
  }
  MutexLock lock(mutex_);
  config.resources.cpuset_cpus = state_.shared.Format();
  return {};
}

void CpuManager::Release(const std::string& uid) {
  MutexLock lock(mutex_);
  auto entry = state_.own.find(uid);
  if (entry == state_.own.end()) return;
  CpuAssignments next = state_;
  for (const auto& [name, cpus] : entry->second) next.shared.Add(cpus);
  next.own.erase(uid);
  if (auto saved = Commit(std::move(next)); !saved) {
    log::Error("Cannot save which CPUs are whose", {{"err", saved.error()}});  // tried again: they stay taken
  }
}

std::set<std::string> CpuManager::Uids() const {
  MutexLock lock(mutex_);
  std::set<std::string> out;
  for (const auto& [uid, containers] : state_.own) out.insert(uid);
  return out;
}

CpuSet CpuManager::Exclusive(const std::string& uid, const std::string& container) const {
  MutexLock lock(mutex_);
  auto entry = state_.own.find(uid);
  if (entry == state_.own.end()) return {};
  auto found = entry->second.find(container);
  return found == entry->second.end() ? CpuSet() : found->second;
}

void CpuManager::Reconcile(const Runtime& runtime, std::map<std::string, CpuSet>& told,
                           std::stop_token stop) {
  std::map<std::string, CpuSet> now;
  for (const Running& container : runtime.containers()) {
    if (stop.stop_requested()) return;
    CpuSet cpus = Exclusive(container.uid, container.container);
    if (cpus.empty()) {
      MutexLock lock(mutex_);
      cpus = state_.shared;
    }
    auto last = told.find(container.id);
    if (last == told.end() || !(last->second == cpus)) {
      if (auto set = runtime.set_cpus(container.id, cpus, stop); !set) {
        log::Debug("Cannot set a container's CPUs", {{"container", container.id}, {"err", set.error()}});
        continue;  // again at the next turn
      }
    }
    now[container.id] = std::move(cpus);
  }
  told = std::move(now);
}

void CpuManager::Run(const Runtime& runtime, std::stop_token stop) {
  std::stop_callback wake(stop, [this] {
    MutexLock lock(mutex_);
    changed_.notify_all();
  });
  std::map<std::string, CpuSet> told;  // container id -> CPUs
  while (!stop.stop_requested()) {
    uint64_t seen = 0;
    {
      MutexLock lock(mutex_);
      seen = changes_;
    }
    Reconcile(runtime, told, stop);
    SteadyTime until = clock_.SteadyNow() + options_.reconcile_period;
    MutexLock lock(mutex_);
    while (!stop.stop_requested() && changes_ == seen && clock_.SteadyNow() < until) {
      clock_.WaitUntil(mutex_, changed_, until);
    }
  }
}

}  // namespace keelson::kubelet
