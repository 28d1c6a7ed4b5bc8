// Growth of volumes on this node, with recovery from sizes that the node cannot give (KEP-1790).
//
// A resizer enlarges the PersistentVolume first, and sets status.allocatedResourceStatuses["storage"] of the claim:
//
//   NodeResizePending -> NodeResizeInProgress -> none, and status.capacity is the volume's
//                             |        ^
//                             v        |
//                        NodeResizeInfeasible: the resizer decides about another size
//
// A claim without such a state, and without status.allocatedResources, has a resizer that does not know of them: its volume
// grows as well.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "kubelet/volume/plugin.h"
#include "lib/api/quantity.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

enum class Growth {
  kNone,
  kVolume,          // the claim shows the size already: another node has grown the volume
  kVolumeAndClaim,  // the claim's status follows
};
// `capacity`: of the PersistentVolume. `known`: what the volume has on this node.
Growth PlanGrowth(const corev1::PersistentVolumeClaim& claim, const api::Amount& capacity,
                  const api::Amount& known);

class VolumeExpander {  // thread safe
 public:
  // An event of the pod and of its claim.
  using Tell =
      std::function<void(const corev1::Pod& pod, const corev1::PersistentVolumeClaim& claim,
                         const std::string& type, const std::string& reason, const std::string& message)>;
  // `tell` may be empty.
  VolumeExpander(ObjectSource& objects, Tell tell, Clock& clock = Clock::Real())
      : objects_(objects), tell_(std::move(tell)), clock_(clock) {}

  // Grows the volume at `path` if its PersistentVolume has grown. A failure is the caller's, unless the pod has its volume
  // (`mounted`): then it is an event, and RetriesFor(pod) until it has succeeded.
  Result<> Expand(VolumePlugin& plugin, const VolumeInput& input, const std::string& path, bool mounted,
                  std::stop_token stop);
  bool RetriesFor(const std::string& uid) const;
  // The pod's volumes are unmounted.
  void Forget(const std::string& uid);

 private:
  struct Volume {
    api::Amount size;            // that it has on this node
    std::set<std::string> pods;  // uids
    std::set<std::string> retries;
    bool busy = false;
    bool failed = false;        // for good, at the last attempt
    bool only_offline = false;  // the driver does not grow volumes in use
    std::string told;           // of the last failure
  };

  // kNone also while another pod's sync is at it.
  Growth Begin(const VolumeInput& input, const api::Amount& capacity);
  // `size`: that the volume has now; nullopt: as before.
  void End(const VolumeInput& input, const std::optional<api::Amount>& size, const Result<>& done);
  Result<> Grow(VolumePlugin& plugin, const VolumeInput& input, const std::string& path, Growth growth,
                const api::Amount& capacity, std::stop_token stop);
  void MarkFailed(const VolumeInput& input, corev1::PersistentVolumeClaim claim, const Error& error);

  ObjectSource& objects_;
  const Tell tell_;
  Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, Volume> volumes_ KEELSON_GUARDED_BY(mutex_);  // by PersistentVolume
};

}  // namespace keelson::kubelet
