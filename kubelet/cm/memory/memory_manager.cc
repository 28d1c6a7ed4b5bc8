#include "kubelet/cm/memory/memory_manager.h"

#include <algorithm>

#include "kubelet/cm/topology/cpu_set.h"
#include "lib/base/log.h"
#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/qos.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

bool Managed(std::string_view resource) { return resource == "memory" || k8s::IsHugePages(resource); }

MemoryAmounts Wanted(const corev1::Pod& pod, const corev1::Container& container) {
  MemoryAmounts out;
  if (k8s::QosClass(pod) != k8s::kGuaranteed) return out;
  for (const auto& [name, quantity] : container.resources().requests()) {
    if (Managed(name)) {
      if (int64_t bytes = api::Amount::Of(quantity).Value(); bytes > 0) out[name] = bytes;
    }
  }
  return out;
}

MemoryAmounts WantedByPod(const corev1::Pod& pod) {
  MemoryAmounts out;
  if (k8s::QosClass(pod) != k8s::kGuaranteed) return out;
  k8s::PodResourcesOptions options;
  options.exclude_overhead = true;
  for (const auto& [name, amount] : k8s::PodRequests(pod, options)) {
    if (Managed(name) && amount.Value() > 0) out[name] = amount.Value();
  }
  return out;
}

bool Ends(const corev1::Pod& pod, const std::string& container) {
  const auto& init = pod.spec().init_containers();
  return std::any_of(init.begin(), init.end(),
                     [&](const auto& item) { return item.name() == container && !k8s::IsSidecar(item); });
}

// What is reserved of the nodes has to add up to what is reserved of the machine.
Result<> CheckReserved(const MemoryManagerOptions& options) {
  MemoryAmounts sum;
  for (const auto& [node, amounts] : options.reserved) {
    for (const auto& [type, bytes] : amounts) sum[type] += bytes;
  }
  MemoryAmounts both = sum;
  both.insert(options.node_reserved.begin(), options.node_reserved.end());
  for (const auto& [type, unused] : both) {
    auto total = options.node_reserved.find(type);
    int64_t a = sum[type], b = total == options.node_reserved.end() ? 0 : total->second;
    if (a != b) {
      return Error(Code::kInvalid, "the total amount \"" + std::to_string(a) + "\" of type \"" + type +
                                       "\" is not equal to the value \"" + std::to_string(b) +
                                       "\" determined by Node Allocatable feature");
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<MemoryManager>> MemoryManager::Make(const MachineTopology& machine,
                                                           const MemoryManagerOptions& options) {
  KEELSON_RETURN_IF_ERROR(CheckReserved(options));
  std::map<int, MemoryAmounts> allocatable;
  for (const auto& [id, node] : machine.nodes) {
    allocatable[id] = node.huge_pages;
    int64_t huge = 0;
    for (const auto& [type, bytes] : node.huge_pages) huge += bytes;
    allocatable[id]["memory"] = node.memory_bytes - huge;
  }
  for (const auto& [id, amounts] : options.reserved) {
    if (!allocatable.count(id)) {
      return Error(Code::kInvalid, "[memorymanager] NUMA node " + std::to_string(id) +
                                       " of reservedMemory is not on this machine");
    }
    for (const auto& [type, bytes] : amounts) {
      allocatable[id][type] = std::max<int64_t>(allocatable[id][type] - bytes, 0);
    }
  }
  auto grants = LoadMemoryGrants(options.state_file);
  if (!grants) {
    return Error(Code::kInvalid,
                 "could not restore state from checkpoint: " + grants.error().message() +
                     ", please drain this node and delete the memory manager checkpoint file \"" +
                     options.state_file + "\" before restarting Kubelet");
  }
  return std::unique_ptr<MemoryManager>(
      new MemoryManager(machine, options.state_file, std::move(allocatable), std::move(*grants)));
}

// As one more container of the pod finds it: its init containers, whose memory was enough, are over by then.
MemoryTable MemoryManager::TableFor(const std::string& uid) const {
  MemoryGrants grants = grants_;
  if (auto own = grants.pods.find(uid); own != grants.pods.end()) {
    for (auto it = own->second.begin(); it != own->second.end();) {
      it = it->second.passing ? own->second.erase(it) : std::next(it);
    }
  }
  return MemoryTable(allocatable_, grants);
}

std::vector<TopologyHint> MemoryManager::HintsFor(const MemoryTable& table,
                                                  const MemoryAmounts& wanted) const {
  size_t least = machine_.nodes.size();
  std::vector<TopologyHint> hints;
  for (const NumaMask& mask : machine_.NodeSets()) {
    if (table.LargeEnough(mask, wanted)) least = std::min(least, mask.count());
    if (table.Fits(mask, wanted)) hints.push_back({mask, false});
  }
  for (TopologyHint& hint : hints) hint.preferred = hint.nodes->count() == least;
  return hints;
}

TopologyHints MemoryManager::Hints(const corev1::Pod& pod, const corev1::Container& container) {
  MemoryAmounts wanted = Wanted(pod, container);
  TopologyHints out;
  if (wanted.empty()) return out;
  MutexLock lock(mutex_);
  std::vector<TopologyHint> hints;
  auto entry = grants_.pods.find(pod.metadata().uid());
  if (entry != grants_.pods.end() && entry->second.count(container.name())) {
    hints = {{entry->second.at(container.name()).nodes, true}};
  } else {
    hints = HintsFor(TableFor(pod.metadata().uid()), wanted);
  }
  for (const auto& [type, bytes] : wanted) out[type] = hints;
  return out;
}

TopologyHints MemoryManager::PodHints(const corev1::Pod& pod) {
  MemoryAmounts wanted = WantedByPod(pod);
  TopologyHints out;
  if (wanted.empty()) return out;
  MutexLock lock(mutex_);
  std::vector<TopologyHint> hints = HintsFor(TableFor(pod.metadata().uid()), wanted);
  for (const auto& [type, bytes] : wanted) out[type] = hints;
  return out;
}

// The agreed nodes if they have enough, else the fewest with these among them; without agreement the fewest.
Result<NumaMask> MemoryManager::Choose(const MemoryTable& table, const MemoryAmounts& wanted,
                                       const TopologyHint& affinity) const {
  if (affinity.nodes && table.Fits(*affinity.nodes, wanted)) return *affinity.nodes;
  for (const TopologyHint& hint : HintsFor(table, wanted)) {  // the small ones first
    if (!affinity.nodes || (*hint.nodes & *affinity.nodes) == *affinity.nodes) return *hint.nodes;
  }
  return Error(Code::kConflict,
               affinity.nodes
                   ? "[memorymanager] failed to find NUMA nodes to extend the current topology hint"
                   : "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with "
                     "enough memory is available");
}

std::optional<k8s::AdmitFailure> MemoryManager::Allocate(const corev1::Pod& pod,
                                                         const corev1::Container& container,
                                                         const TopologyHint& affinity) {
  MemoryAmounts wanted = Wanted(pod, container);
  if (wanted.empty()) return std::nullopt;
  static metrics::Value& errors =
      metrics::Counter("kubelet_memory_manager_pinning_errors_total",
                       "The number of memory pages allocations which required pinning that failed.")
          .With();
  auto unexpected = [](const std::string& why) {
    errors.Increment();
    return k8s::AdmitFailure{"UnexpectedAdmissionError",
                             "Allocate failed due to " + why + ", which is unexpected"};
  };
  MutexLock lock(mutex_);
  auto entry = grants_.pods.find(pod.metadata().uid());
  if (entry != grants_.pods.end() && entry->second.count(container.name())) return std::nullopt;
  metrics::Counter("kubelet_memory_manager_pinning_requests_total",
                   "The number of memory pages allocations which required pinning.")
      .With()
      .Increment();
  auto nodes = Choose(TableFor(pod.metadata().uid()), wanted, affinity);
  if (!nodes) return unexpected(nodes.error().message());
  MemoryGrants next = grants_;
  next.pods[pod.metadata().uid()][container.name()] = {*nodes, wanted, Ends(pod, container.name())};
  if (auto saved = SaveMemoryGrants(state_file_, next); !saved) return unexpected(saved.error().message());
  grants_ = std::move(next);
  return std::nullopt;
}

Result<> MemoryManager::Configure(const corev1::Pod& pod, const corev1::Container& container,
                                  cri::ContainerConfig& config, std::stop_token) {
  auto grant = Granted(pod.metadata().uid(), container.name());
  if (!grant) return {};
  CpuSet nodes;  // the kernel writes lists of nodes as it does lists of CPUs
  for (const auto& [id, node] : machine_.nodes) {
    if (grant->nodes.test(id)) nodes.Add(id);
  }
  config.resources.cpuset_mems = nodes.Format();
  return {};
}

void MemoryManager::Release(const std::string& uid) {
  MutexLock lock(mutex_);
  if (!grants_.pods.count(uid)) return;
  MemoryGrants next = grants_;
  next.pods.erase(uid);
  if (auto saved = SaveMemoryGrants(state_file_, next); !saved) {
    log::Error("Cannot save whose memory is where",
               {{"err", saved.error()}});  // stays granted until the next try
  } else {
    grants_ = std::move(next);
  }
}

std::set<std::string> MemoryManager::Uids() const {
  MutexLock lock(mutex_);
  std::set<std::string> out;
  for (const auto& [uid, containers] : grants_.pods) out.insert(uid);
  return out;
}

std::optional<MemoryGrant> MemoryManager::Granted(const std::string& uid,
                                                  const std::string& container) const {
  MutexLock lock(mutex_);
  auto entry = grants_.pods.find(uid);
  if (entry == grants_.pods.end() || !entry->second.count(container)) return std::nullopt;
  return entry->second.at(container);
}

}  // namespace keelson::kubelet
