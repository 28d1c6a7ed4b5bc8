// The interface of the CPU, memory and device managers (upstream's HintProvider): each says where on the machine it
// could meet a container's requests, allocates what the topology manager decided, and configures the container
// (KEP-693, KEP-3570, KEP-1769, KEP-3573).
#pragma once

#include <bitset>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

using NumaMask = std::bitset<64>;  // bit N: NUMA node N

struct TopologyHint {
  std::optional<NumaMask> nodes;  // absent: anywhere
  bool preferred = false;
  bool operator==(const TopologyHint&) const = default;
};

// Resource -> ways to meet the request. A resource that is not in the map has no preference; an empty list means
// that the request cannot be met.
using TopologyHints = std::map<std::string, std::vector<TopologyHint>>;

// Calls for one pod come one at a time, in the order Hints, Allocate (of every container, init containers
// first), Configure (at every start of a container), Release. What was allocated survives a restart of the
// kubelet: it is in a checkpoint before Allocate returns.
class ResourceProvider {  // thread safe
 public:
  virtual ~ResourceProvider() = default;
  virtual TopologyHints Hints(const corev1::Pod& pod, const corev1::Container& container) = 0;
  virtual TopologyHints PodHints(const corev1::Pod& pod) = 0;  // for all containers together
  // Idempotent: what the container already has stays allocated. A failure rejects the pod; the caller then
  // releases what its other containers got.
  virtual std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod,
                                                    const corev1::Container& container,
                                                    const TopologyHint& affinity) = 0;
  // Adds what the container was allocated to its configuration.
  virtual Result<> Configure(const corev1::Pod& pod, const corev1::Container& container,
                             cri::ContainerConfig& config, std::stop_token stop) = 0;
  // Does nothing for an unknown pod.
  virtual void Release(const std::string& uid) = 0;
  // Pods that have an allocation: after a restart the caller releases those that are gone.
  virtual std::set<std::string> Uids() const = 0;
};

}  // namespace keelson::kubelet
