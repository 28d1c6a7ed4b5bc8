// What the scheduler keeps of a node: facts as the node object states them (shared, replaced as a whole) and
// what the pods on it use.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/scheduler/types/pod_info.h"

namespace keelson::scheduler {

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
  // Labels, taints and spec.unschedulable: what decides whether pods on it count somewhere.
  bool SamePlace(const NodeFacts& other) const;
  bool SameTaints(const NodeFacts& other) const;
  bool operator==(const NodeFacts& other) const;
};

struct NodeInfo {
  uint32_t slot = 0;                       // its place in the snapshot
  std::shared_ptr<const NodeFacts> facts;  // null: pods name a node that is not there
  Resources allocatable;                   // of facts, close at hand
  Resources used;                          // pods counts them
  int64_t scoring_milli_cpu = 0, scoring_memory = 0;
  std::vector<k8s::HostPort> ports;
  std::vector<PodPtr> pods;
  std::vector<PodPtr> nominated;  // will be here once there is room
  // Never the same for two states of any two nodes.
  uint64_t generation = 0;

  void AddPod(const PodPtr& pod);
  void RemovePod(const PodInfo& pod);  // the one of its key
};

}  // namespace keelson::scheduler
