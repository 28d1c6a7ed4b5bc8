// The taints and conditions that follow from a node's health, and their effect on pods. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"

namespace keelson::controllers {

inline constexpr char kNotReady[] = "node.kubernetes.io/not-ready";
inline constexpr char kUnreachable[] = "node.kubernetes.io/unreachable";

enum class NodeHealth { kReady, kNotReady, kUnknown };
NodeHealth HealthOf(const corev1::Node& node);  // from the Ready condition

// Sets Ready and the pressure conditions to Unknown, because the kubelet stopped reporting. Returns whether
// anything changed.
bool MarkUnknown(corev1::NodeStatus& status, WallTime created, WallTime now);

// What to do with the NoExecute taint of an unhealthy node.
enum class Eviction {
  kKeep,   // leave it as it is
  kStart,  // set it
  kCancel  // remove it: the node is not at fault
};

// Returns the node's taints. The controller owns the taints by condition and by spec.unschedulable
// (NoSchedule), and not-ready and unreachable (NoExecute); other taints stay untouched.
using TaintList = google::protobuf::RepeatedPtrField<corev1::Taint>;
TaintList PlanTaints(const corev1::Node& node, Eviction eviction, WallTime now);

// How long a pod may stay on a node with these taints, from when they were first seen; nullopt: forever. The
// first matching toleration decides for each taint; the shortest time over all taints counts.
std::optional<std::chrono::seconds> Patience(const corev1::Pod& pod, const TaintList& taints);

}  // namespace keelson::controllers
