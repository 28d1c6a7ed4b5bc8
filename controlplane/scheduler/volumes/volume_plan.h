// What is to be done about the claims of a pod so that it can run on a node. No I/O.
#pragma once

#include <string>
#include <vector>

#include "controlplane/scheduler/types/node_info.h"
#include "controlplane/scheduler/volumes/volumes.h"

namespace keelson::scheduler {

inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";
inline constexpr char kBindCompleted[] = "pv.kubernetes.io/bind-completed";
inline constexpr char kBoundByController[] = "pv.kubernetes.io/bound-by-controller";
inline constexpr char kNoProvisioner[] = "kubernetes.io/no-provisioner";

// A pod's claims, by what has become of them.
struct ClaimSet {
  using Claim = VolumeCatalog::Ptr<VolumeCatalog::Claim>;
  std::vector<Claim> bound;      // to volumes
  std::vector<Claim> delayed;    // WaitForFirstConsumer: the pod's node decides
  std::vector<Claim> immediate;  // somebody else will bind them
  std::string problem;           // not empty: why the pod cannot be scheduled at all
};
ClaimSet ClaimsOf(const PodInfo& pod, const VolumeCatalog& volumes);

struct VolumePlan {
  struct Binding {
    VolumeCatalog::Ptr<VolumeCatalog::Volume> volume;
    ClaimSet::Claim claim;
  };
  std::vector<Binding> bindings;           // volumes that are there
  std::vector<ClaimSet::Claim> provision;  // claims that a provisioner is asked for, on this node
  // Reasons against the node, in upstream's words.
  bool lost = false;         // a volume is not there
  bool conflict = false;     // a bound volume does not reach the node
  bool unsatisfied = false;  // no volume to bind, and none can be made
  bool no_room = false;      // the driver has no room for one

  bool ok() const { return !lost && !conflict && !unsatisfied && !no_room; }
};
VolumePlan PlanVolumes(const ClaimSet& claims, const NodeFacts& node, const VolumeCatalog& volumes);

// Whether the claim has its volume, and both know.
bool IsFullyBound(const VolumeCatalog::Claim& claim);

}  // namespace keelson::scheduler
