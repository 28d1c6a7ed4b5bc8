// What a node's health means for its conditions and taints, and taints for its pods. Pure functions.
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
NodeHealth HealthOf(const corev1::Node& node);  // by the Ready condition

// Makes Ready and the pressure conditions Unknown, as the kubelet has fallen silent. Returns whether anything
// changed.
bool MarkUnknown(corev1::NodeStatus& status, WallTime created, WallTime now);

// What becomes of an unhealthy node's NoExecute taint.
enum class Eviction {
  kKeep,   // as it is
  kStart,  // set it
  kCancel  // clear it: the fault is not the node's
};

// The node's taints as they should be: those by condition and by spec.unschedulable (NoSchedule) and those
// for eviction (not-ready and unreachable, NoExecute) are ours, all others stay untouched.
using TaintList = google::protobuf::RepeatedPtrField<corev1::Taint>;
TaintList PlanTaints(const corev1::Node& node, Eviction eviction, WallTime now);

// When a pod must leave a node with these taints; nullopt: it may stay. `seen` gives the moment for taints
// that carry no time.
std::optional<WallTime> EvictionTime(const corev1::Pod& pod, const TaintList& taints, WallTime seen);

}  // namespace keelson::controllers
