// Aligns the allocations of the resource managers to NUMA nodes before a pod is admitted (KEP-693), and stands for
// all of them.
#pragma once

#include <string>
#include <vector>

#include "kubelet/cm/topology/hint_merge.h"
#include "kubelet/cm/topology/provider.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

enum class TopologyScope { kContainer, kPod };

struct TopologyOptions {
  MergeOptions merge;
  TopologyScope scope = TopologyScope::kContainer;
  int max_numa_nodes = 8;  // more are rejected: there are 2^n sets of nodes
};
// topologyManagerPolicy, topologyManagerScope, topologyManagerPolicyOptions. kInvalid, with upstream's
// message: an unknown value.
Result<TopologyOptions> ParseTopologyOptions(const std::string& policy, const std::string& scope,
                                             const std::map<std::string, std::string>& options);

class TopologyManager {  // thread safe
 public:
  // kInvalid when the policy cannot work on this machine. Providers outlive the manager.
  static Result<std::unique_ptr<TopologyManager>> Make(const MachineTopology& machine,
                                                       const TopologyOptions& options,
                                                       std::vector<ResourceProvider*> providers);

  // Allocates for every container, or for none and returns why. Concurrent calls wait for each other.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod);
  // As ResourceProvider::Configure, of all providers.
  Result<> Configure(const corev1::Pod& pod, const corev1::Container& container, cri::ContainerConfig& config,
                     std::stop_token stop);
  void Release(const std::string& uid);
  // Releases what all pods but `uids` have.
  void RemoveStaleState(const std::set<std::string>& uids);

 private:
  TopologyManager(const MachineTopology& machine, const TopologyOptions& options,
                  std::vector<ResourceProvider*> providers)
      : machine_(machine), options_(options), providers_(std::move(providers)) {}
  std::optional<k8s::AdmitFailure> AdmitPod(const corev1::Pod& pod);
  std::optional<k8s::AdmitFailure> AdmitContainer(const corev1::Pod& pod, const corev1::Container& container);
  std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod, const corev1::Container& container,
                                            const TopologyHint& affinity);

  const MachineTopology machine_;
  const TopologyOptions options_;
  const std::vector<ResourceProvider*> providers_;
  Mutex admission_;
};

}  // namespace keelson::kubelet
