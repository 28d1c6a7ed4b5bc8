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

// How long a pod may stay on a node with these taints, counted from when they were first seen; nullopt: for
// ever. The first toleration that fits a taint decides for it; the shortest time of all taints counts.
std::optional<std::chrono::seconds> Patience(const corev1::Pod& pod, const TaintList& taints);

}  // namespace keelson::controllers
