// What the managers of CPUs, memory and devices have in common: each tells where on the machine it could meet
// a container's requests, takes what was agreed on, and tells the runtime (KEP-693, KEP-3570, KEP-1769,
// KEP-3573).
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

// Resource -> ways to meet the request. A resource that is not in the map has no preference; one with an
// empty list cannot be met at all.
using TopologyHints = std::map<std::string, std::vector<TopologyHint>>;

// Calls for one pod come one at a time, in the order Hints, Allocate (of every container, init containers
// first), Configure (at every start of a container), Release. What was allocated survives a restart of the
// kubelet: it is in a checkpoint before Allocate returns.
class ResourceProvider {  // thread safe
 public:
  virtual ~ResourceProvider() = default;
  virtual TopologyHints Hints(const corev1::Pod& pod, const corev1::Container& container) = 0;
  virtual TopologyHints PodHints(const corev1::Pod& pod) = 0;  // for all containers together
  // Idempotent: what the container has already stays its own. A failure is the pod's rejection; what other
  // containers of the pod got is then released by the caller.
  virtual std::optional<k8s::AdmitFailure> Allocate(const corev1::Pod& pod,
                                                    const corev1::Container& container,
                                                    const TopologyHint& affinity) = 0;
  // Adds what the container was given to what the runtime is told.
  virtual Result<> Configure(const corev1::Pod& pod, const corev1::Container& container,
                             cri::ContainerConfig& config, std::stop_token stop) = 0;
  virtual void Release(const std::string& uid) = 0;
  // Pods that have anything; those that are no more are released after a restart.
  virtual std::set<std::string> Uids() const = 0;
};

}  // namespace keelson::kubelet
