// The plugins that come with the scheduler. Each is one file.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

// A resource that scores look at, and how much it counts.
struct ResourceWeight {
  std::string name;
  int64_t weight = 1;
  bool operator==(const ResourceWeight&) const = default;
};

// NodeResourcesFitArgs.
struct FitArgs {
  enum class Strategy { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };
  std::vector<std::string> ignored_resources, ignored_groups;
  Strategy strategy = Strategy::kLeastAllocated;
  std::vector<ResourceWeight> resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<std::pair<int64_t, int64_t>> shape;  // utilization in percent, score 0..10; ascending
};

// PodTopologySpreadArgs.
struct SpreadArgs {
  bool system_defaults = true;  // else `defaults`
  std::vector<corev1::TopologySpreadConstraint> defaults;
};

// InterPodAffinityArgs.
struct InterPodAffinityArgs {
  int32_t hard_weight = 1;
  bool ignore_others_preferred = false;
};

// The selector of what a pod without spread constraints is a part of: Services, and its ReplicaSet,
// StatefulSet or ReplicationController.
class WorkloadSelectors {
 public:
  virtual ~WorkloadSelectors() = default;
  // nullopt: it is a part of nothing.
  virtual std::optional<metav1::LabelSelector> SelectorOf(const PodInfo& pod) const = 0;
  virtual uint64_t epoch() const = 0;  // grows when answers may change
};

// DefaultPreemptionArgs: how many nodes are tried.
struct PreemptionArgs {
  int min_candidates_percentage = 10;
  int min_candidates = 100;
};

// VolumeBindingArgs.
struct VolumeBindingArgs {
  int bind_timeout_seconds = 600;
};

class Evictor;        // evictor.h
class VolumeCatalog;  // volumes.h

// Pods with spec.schedulingGates wait.
std::unique_ptr<Plugin> NewSchedulingGates();
// spec.nodeName, should it be set on a pod that is scheduled.
std::unique_ptr<Plugin> NewNodeName(Reasons& reasons);
// spec.unschedulable of nodes, unless the pod tolerates node.kubernetes.io/unschedulable.
std::unique_ptr<Plugin> NewNodeUnschedulable(Reasons& reasons);
// spec.nodeSelector and node affinity: required as filter, preferred as score. `added` is for all pods.
std::unique_ptr<Plugin> NewNodeAffinity(Reasons& reasons, const corev1::NodeAffinity& added = {});
// NoSchedule and NoExecute taints as filter, PreferNoSchedule as score.
std::unique_ptr<Plugin> NewTaintToleration(Reasons& reasons);
// Host ports.
std::unique_ptr<Plugin> NewNodePorts(Reasons& reasons);
// Requests within what is allocatable as filter, the strategy as score.
std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, NameIds& resources, FitArgs args = {});
// Score: resources in use to the same degree.
std::unique_ptr<Plugin> NewBalancedAllocation(NameIds& resources, std::vector<ResourceWeight> weights = {
                                                                      {"cpu", 1}, {"memory", 1}});
// Score: nodes that have the pod's images already.
std::unique_ptr<Plugin> NewImageLocality();
// Filter: features that nodes declare and the pod cannot do without.
std::unique_ptr<Plugin> NewNodeDeclaredFeatures(Reasons& reasons);
// topologySpreadConstraints: DoNotSchedule as filter, ScheduleAnyway as score. `workloads` may be null.
std::unique_ptr<Plugin> NewPodTopologySpread(Reasons& reasons, Vocabulary& words, SpreadArgs args = {},
                                             const WorkloadSelectors* workloads = nullptr);
// Pod affinity and anti-affinity, the pod's own and that of others towards it.
std::unique_ptr<Plugin> NewInterPodAffinity(Reasons& reasons, InterPodAffinityArgs args = {});
// Makes room by evicting pods of lower priority.
std::unique_ptr<Plugin> NewDefaultPreemption(const Framework& framework, Reasons& reasons, Evictor& evictor,
                                             PreemptionArgs args = {});
// Disks and ReadWriteOncePod claims that only one pod can use.
std::unique_ptr<Plugin> NewVolumeRestrictions(Reasons& reasons, VolumeCatalog& volumes);
// How many volumes of a CSI driver a node can take.
std::unique_ptr<Plugin> NewNodeVolumeLimits(Reasons& reasons, VolumeCatalog& volumes);
// Claims: bound volumes must reach the node, unbound ones find or get a volume there.
std::unique_ptr<Plugin> NewVolumeBinding(Reasons& reasons, VolumeCatalog& volumes,
                                         const client::RestClient* api, VolumeBindingArgs args = {});
// Zone and region labels of bound volumes.
std::unique_ptr<Plugin> NewVolumeZone(Reasons& reasons, VolumeCatalog& volumes);
// POST to pods/binding.
std::unique_ptr<Plugin> NewDefaultBinder(client::RestClient api);

}  // namespace keelson::scheduler
