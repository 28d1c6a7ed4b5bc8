// Which volumes the claims of a pod would get on a node. No I/O.
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

// A pod's claims, by binding state.
struct ClaimSet {
  using Claim = VolumeCatalog::Ptr<VolumeCatalog::Claim>;
  std::vector<Claim> bound;      // to volumes
  std::vector<Claim> delayed;    // WaitForFirstConsumer: bound once the pod has a node
  std::vector<Claim> immediate;  // unbound; the PV controller binds them
  std::string problem;           // not empty: why the pod fits no node
};
// The claims of a pod as of now.
ClaimSet ClaimsOf(const PodInfo& pod, const VolumeCatalog& volumes);

// The outcome for one node.
struct VolumePlan {
  struct Binding {
    VolumeCatalog::Ptr<VolumeCatalog::Volume> volume;
    ClaimSet::Claim claim;
  };
  std::vector<Binding> bindings;           // existing volumes
  std::vector<ClaimSet::Claim> provision;  // claims that need a new volume, for this node
  // Why the pod does not fit the node.
  bool lost = false;         // a bound volume does not exist
  bool conflict = false;     // the node affinity of a bound volume excludes the node
  bool unsatisfied = false;  // no volume to bind, and no provisioner for one
  bool no_room = false;      // CSIStorageCapacity is too small

  bool ok() const { return !lost && !conflict && !unsatisfied && !no_room; }
};
VolumePlan PlanVolumes(const ClaimSet& claims, const NodeFacts& node, const VolumeCatalog& volumes);

// Whether the claim names its volume and binding is complete.
bool IsFullyBound(const VolumeCatalog::Claim& claim);

}  // namespace keelson::scheduler
