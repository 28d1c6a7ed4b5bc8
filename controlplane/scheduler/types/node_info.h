// A node as the scheduler keeps it: its object's content (NodeFacts, immutable and shared) and the sums over the
// pods on it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/scheduler/types/pod_info.h"

namespace keelson::scheduler {

// What a Node object says.
struct NodeFacts {
  std::string name;
  k8s::LabelSet labels;
  k8s::Taints taints;
  bool unschedulable = false;
  Resources allocatable;
  size_t prefer_no_schedule = 0;                        // taints with that effect
  bool hard_taints = false;                             // any taint with another effect
  std::vector<std::pair<std::string, int64_t>> images;  // name and bytes, sorted
  std::vector<std::string> features;                    // declared ones, sorted

  NodeFacts(const corev1::Node& node, NameIds& resources);
  k8s::NodeView view() const { return {name, labels}; }
  // Whether labels, taints and spec.unschedulable are equal: those decide in which domains its pods count.
  bool SamePlace(const NodeFacts& other) const;
  bool SameTaints(const NodeFacts& other) const;
  bool operator==(const NodeFacts& other) const;
};

// After kube-scheduler's NodeInfo. A value; not thread safe.
struct NodeInfo {
  uint32_t slot = 0;                       // its position in the snapshot
  std::shared_ptr<const NodeFacts> facts;  // null: only pods name this node
  Resources allocatable;                   // a copy of that of facts
  Resources requested;                     // sum over the pods; its `pods` is their number
  int64_t non_zero_requested_milli_cpu = 0, non_zero_requested_memory = 0;  // sum, with defaults
  std::vector<k8s::HostPort> ports;
  std::vector<PodPtr> pods;
  std::vector<PodPtr> nominated;  // nominated for this node
  // Unique among all states of all nodes.
  uint64_t generation = 0;

  void AddPod(const PodPtr& pod);
  void RemovePod(const PodInfo& pod);  // by key
};

}  // namespace keelson::scheduler
