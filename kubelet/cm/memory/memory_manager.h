// Allocates memory and huge pages of certain NUMA nodes to containers of Guaranteed pods (KEP-1769, policy Static).
#pragma once

#include <memory>
#include <string>

#include "kubelet/cm/memory/memory_state.h"
#include "kubelet/cm/topology/provider.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct MemoryManagerOptions {
  std::string state_file;                 // <root>/memory_manager_state
  std::map<int, MemoryAmounts> reserved;  // reservedMemory
  MemoryAmounts node_reserved;            // kubeReserved, systemReserved and evictionHard together
};

class MemoryManager : public ResourceProvider {  // thread safe
 public:
  // kInvalid: the reservations of the NUMA nodes do not add up to the machine's, or the state file does not fit.
  static Result<std::unique_ptr<MemoryManager>> Make(const MachineTopology& machine,
                                                     const MemoryManagerOptions& options);

  TopologyHints Hints(const corev1::Pod& pod, const corev1::Container& container) override;
  TopologyHints PodHints(const corev1::Pod& pod) override;
  std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod, const corev1::Container& container,
                                            const TopologyHint& affinity) override;
  Result<> Configure(const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                     std::stop_token stop) override;
  void Release(const std::string& uid) override;
  std::set<std::string> Uids() const override;

  // nullopt: nothing is allocated to the container.
  std::optional<MemoryGrant> Granted(const std::string& uid, const std::string& container) const;
  // By NUMA node: what is not reserved.
  const std::map<int, MemoryAmounts>& allocatable() const { return allocatable_; }

 private:
  MemoryManager(const MachineTopology& machine, std::string state_file,
                std::map<int, MemoryAmounts> allocatable, MemoryGrants grants)
      : machine_(machine),
        state_file_(std::move(state_file)),
        allocatable_(std::move(allocatable)),
        grants_(std::move(grants)) {}
  MemoryTable TableFor(const std::string& uid) const KEELSON_REQUIRES(mutex_);
  std::vector<TopologyHint> HintsFor(const MemoryTable& table, const MemoryAmounts& wanted) const;
  Result<NumaMask> Choose(const MemoryTable& table, const MemoryAmounts& wanted,
                          const TopologyHint& affinity) const;

  const MachineTopology machine_;
  const std::string state_file_;
  const std::map<int, MemoryAmounts> allocatable_;
  mutable Mutex mutex_;
  MemoryGrants grants_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
