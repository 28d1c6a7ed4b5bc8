// Changes in the cluster that may make an unschedulable pod schedulable.
#pragma once

#include <cstdint>
#include <memory>

#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

struct ClusterEvent {
  // Bits, so that a set of kinds is a uint32_t.
  enum class Kind : uint32_t {
    kNodeAdd = 1 << 0,
    kNodeUpdate = 1 << 1,
    kAssignedPodAdd = 1 << 2,        // a pod is on a node now
    kAssignedPodUpdate = 1 << 3,     // the labels of a pod on a node changed, or its requests shrank
    kAssignedPodDelete = 1 << 4,     // a pod has left its node
    kStorageUpdate = 1 << 5,         // a claim, volume, class or driver of a node changed
    kUnschedulableTimeout = 1 << 6,  // wakes every pod
    kNamespaceUpdate = 1 << 7,
  };
  Kind kind;
  std::shared_ptr<const NodeFacts> node, old_node;  // of node events; old_node of kNodeUpdate only
  PodPtr pod, old_pod;                              // of pod events; old_pod of kAssignedPodUpdate only
};

constexpr uint32_t operator|(ClusterEvent::Kind a, ClusterEvent::Kind b) {
  return static_cast<uint32_t>(a) | static_cast<uint32_t>(b);
}
constexpr uint32_t operator|(uint32_t a, ClusterEvent::Kind b) { return a | static_cast<uint32_t>(b); }

}  // namespace keelson::scheduler
