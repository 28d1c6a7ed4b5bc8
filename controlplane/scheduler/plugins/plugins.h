// The in-tree plugins. Each is one file. References outlive the plugin.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "controlplane/scheduler/framework/framework.h"
#include "lib/client/rest.h"

namespace keelson::scheduler {

// A resource in a score, and its weight.
struct ResourceWeight {
  std::string name;
  int64_t weight = 1;
  bool operator==(const ResourceWeight&) const = default;
};

// NodeResourcesFitArgs.
struct NodeResourcesFitArgs {
  enum class Strategy { kLeastAllocated, kMostAllocated, kRequestedToCapacityRatio };
  std::vector<std::string> ignored_resources, ignored_groups;
  Strategy strategy = Strategy::kLeastAllocated;
  std::vector<ResourceWeight> resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<std::pair<int64_t, int64_t>> shape;  // utilization in percent, score 0..10; ascending
};

// PodTopologySpreadArgs.
struct PodTopologySpreadArgs {
  bool system_defaults = true;  // else `defaults`
  std::vector<corev1::TopologySpreadConstraint> defaults;
};

// InterPodAffinityArgs.
struct InterPodAffinityArgs {
  int32_t hard_pod_affinity_weight = 1;
  bool ignore_preferred_terms_of_existing_pods = false;
};

// Finds the selector for the default spread constraints of a pod: that of its Services and of its ReplicaSet,
// StatefulSet or ReplicationController. Thread safe.
class DefaultSelectors {
 public:
  virtual ~DefaultSelectors() = default;
  // nullopt: the pod has none of these.
  virtual std::optional<metav1::LabelSelector> DefaultSelector(const PodInfo& pod) const = 0;
  virtual uint64_t epoch() const = 0;  // grows when answers may change
};

// DefaultPreemptionArgs: the number of candidate nodes to find.
struct DefaultPreemptionArgs {
  int min_candidates_percentage = 10;
  int min_candidates = 100;
};

// VolumeBindingArgs.
struct VolumeBindingArgs {
  int bind_timeout_seconds = 600;
};

class PreemptionExecutor;  // preemption/executor.h
class VolumeCatalog;       // volumes/volumes.h

// PreEnqueue: pods with spec.schedulingGates wait.
std::unique_ptr<Plugin> NewSchedulingGates();
// Filter: spec.nodeName, when it is set on a pod that is scheduled.
std::unique_ptr<Plugin> NewNodeName(Reasons& reasons);
// Filter: spec.unschedulable of nodes, unless the pod tolerates node.kubernetes.io/unschedulable.
std::unique_ptr<Plugin> NewNodeUnschedulable(Reasons& reasons);
// spec.nodeSelector and node affinity: required as filter, preferred as score. `added` is for all pods.
std::unique_ptr<Plugin> NewNodeAffinity(Reasons& reasons, const corev1::NodeAffinity& added = {});
// NoSchedule and NoExecute taints as filter, PreferNoSchedule as score.
std::unique_ptr<Plugin> NewTaintToleration(Reasons& reasons);
// Filter: host ports.
std::unique_ptr<Plugin> NewNodePorts(Reasons& reasons);
// Filter: requests within the allocatable resources. Score: the strategy.
std::unique_ptr<Plugin> NewNodeResourcesFit(Reasons& reasons, NameIds& resources,
                                            NodeResourcesFitArgs args = {});
// Score: balanced use of resources.
std::unique_ptr<Plugin> NewBalancedAllocation(NameIds& resources, std::vector<ResourceWeight> weights = {
                                                                      {"cpu", 1}, {"memory", 1}});
// Score: nodes that have the pod's images already.
std::unique_ptr<Plugin> NewImageLocality();
// Filter: features that the pod requires and nodes declare.
std::unique_ptr<Plugin> NewNodeDeclaredFeatures(Reasons& reasons);
// topologySpreadConstraints: DoNotSchedule as filter, ScheduleAnyway as score. `default_selectors` may be null.
std::unique_ptr<Plugin> NewPodTopologySpread(Reasons& reasons, Vocabulary& words,
                                             PodTopologySpreadArgs args = {},
                                             const DefaultSelectors* default_selectors = nullptr);
// Filter and score: pod affinity and anti-affinity, of the pod and of existing pods towards it.
std::unique_ptr<Plugin> NewInterPodAffinity(Reasons& reasons, InterPodAffinityArgs args = {});
// PostFilter: evicts pods of lower priority.
std::unique_ptr<Plugin> NewDefaultPreemption(const Framework& framework, Reasons& reasons,
                                             PreemptionExecutor& executor, DefaultPreemptionArgs args = {});
// Filter: disks and ReadWriteOncePod claims that only one pod can use.
std::unique_ptr<Plugin> NewVolumeRestrictions(Reasons& reasons, VolumeCatalog& volumes);
// Filter: the number of volumes of a CSI driver that a node can attach.
std::unique_ptr<Plugin> NewNodeVolumeLimits(Reasons& reasons, VolumeCatalog& volumes);
// Filter, Reserve, PreBind: bound volumes must reach the node, unbound claims find or get a volume there.
std::unique_ptr<Plugin> NewVolumeBinding(Reasons& reasons, VolumeCatalog& volumes,
                                         const client::RestClient* api, VolumeBindingArgs args = {});
// Filter: zone and region labels of bound volumes.
std::unique_ptr<Plugin> NewVolumeZone(Reasons& reasons, VolumeCatalog& volumes);
// Bind: POST to pods/binding.
std::unique_ptr<Plugin> NewDefaultBinder(client::RestClient api);

}  // namespace keelson::scheduler
