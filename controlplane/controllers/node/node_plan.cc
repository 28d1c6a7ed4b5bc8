#include "controlplane/controllers/node/node_plan.h"

#include <algorithm>

#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/tolerations.h"

namespace keelson::controllers {
namespace {

struct PressureTaint {
  const char* condition;
  const char* taint;
};
constexpr PressureTaint kPressures[] = {
    {"MemoryPressure", "node.kubernetes.io/memory-pressure"},
    {"DiskPressure", "node.kubernetes.io/disk-pressure"},
    {"PIDPressure", "node.kubernetes.io/pid-pressure"},
    {"NetworkUnavailable", "node.kubernetes.io/network-unavailable"},
};
constexpr char kUnschedulable[] = "node.kubernetes.io/unschedulable";

corev1::Taint MakeTaint(const char* key, std::string_view effect) {
  corev1::Taint taint;
  taint.set_key(key);
  taint.set_effect(std::string(effect));
  return taint;
}

// Taints that this controller owns: only these are ever removed.
bool IsOurs(const corev1::Taint& taint) {
  if (taint.key() == kNotReady || taint.key() == kUnreachable) {
    return taint.effect() == k8s::kNoSchedule || taint.effect() == k8s::kNoExecute;
  }
  if (taint.effect() != k8s::kNoSchedule) return false;
  return taint.key() == kUnschedulable || std::any_of(std::begin(kPressures), std::end(kPressures),
                                                      [&](const auto& p) { return taint.key() == p.taint; });
}

}  // namespace

NodeHealth HealthOf(const corev1::Node& node) {
  const corev1::NodeCondition* ready = k8s::FindCondition(node.status(), "Ready");
  if (!ready || ready->status() == "Unknown") return NodeHealth::kUnknown;
  return ready->status() == "True" ? NodeHealth::kReady : NodeHealth::kNotReady;
}

bool MarkUnknown(corev1::NodeStatus& status, WallTime created, WallTime now) {
  bool changed = false;
  for (const char* type : {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}) {
    const corev1::NodeCondition* before = k8s::FindCondition(status, type);
    if (before && before->status() == "Unknown") continue;
    corev1::NodeCondition condition;
    condition.set_type(type);
    condition.set_status("Unknown");
    condition.set_reason(before ? "NodeStatusUnknown" : "NodeStatusNeverUpdated");
    condition.set_message(before ? "Kubelet stopped posting node status."
                                 : "Kubelet never posted node status.");
    if (before) {
      *condition.mutable_last_heartbeat_time() = before->last_heartbeat_time();
    } else {
      *condition.mutable_last_heartbeat_time() = api::ToTime(created);
    }
    changed |= k8s::SetCondition(status, std::move(condition), now);
  }
  return changed;
}

TaintList PlanTaints(const corev1::Node& node, Eviction eviction, WallTime now) {
  std::vector<corev1::Taint> wanted;
  const bool has_ready = k8s::FindCondition(node.status(), "Ready") != nullptr;
  const NodeHealth health = HealthOf(node);
  const char* key = health == NodeHealth::kNotReady ? kNotReady : kUnreachable;
  // A node that has not reported yet keeps the not-ready taint from admission.
  if (!has_ready) key = kNotReady;
  if (health != NodeHealth::kReady) {
    wanted.push_back(MakeTaint(key, k8s::kNoSchedule));
    const bool had =
        std::any_of(node.spec().taints().begin(), node.spec().taints().end(), [](const auto& taint) {
          return taint.effect() == k8s::kNoExecute &&
                 (taint.key() == kNotReady || taint.key() == kUnreachable);
        });
    if (eviction == Eviction::kStart || (eviction == Eviction::kKeep && had)) {
      wanted.push_back(MakeTaint(key, k8s::kNoExecute));
    }
  }
  for (const PressureTaint& pressure : kPressures) {
    const corev1::NodeCondition* condition = k8s::FindCondition(node.status(), pressure.condition);
    if (condition && condition->status() == "True") {
      wanted.push_back(MakeTaint(pressure.taint, k8s::kNoSchedule));
    }
  }
  if (node.spec().unschedulable()) wanted.push_back(MakeTaint(kUnschedulable, k8s::kNoSchedule));

  TaintList out;
  for (const corev1::Taint& taint : node.spec().taints()) {
    auto it = std::find_if(wanted.begin(), wanted.end(),
                           [&](const corev1::Taint& w) { return k8s::SameTaint(w, taint); });
    if (it == wanted.end() && IsOurs(taint)) continue;
    *out.Add() = taint;
    if (it != wanted.end()) wanted.erase(it);
  }
  for (corev1::Taint& taint : wanted) {
    *taint.mutable_time_added() = api::ToTime(now);
    *out.Add() = std::move(taint);
  }
  return out;
}

std::optional<std::chrono::seconds> Patience(const corev1::Pod& pod, const TaintList& taints) {
  constexpr std::chrono::seconds kNone{0};
  std::optional<std::chrono::seconds> least;
  const auto& tolerations = pod.spec().tolerations();
  for (const corev1::Taint& taint : taints) {
    if (taint.effect() != k8s::kNoExecute) continue;
    const auto first =
        std::find_if(tolerations.begin(), tolerations.end(),
                     [&](const corev1::Toleration& one) { return k8s::Tolerates(one, taint); });
    if (first == tolerations.end()) return kNone;
    if (!first->has_toleration_seconds()) continue;
    const std::chrono::seconds seconds = Span(std::max<int64_t>(first->toleration_seconds(), 0));
    if (!least || seconds < *least) least = seconds;
  }
  return least;
}

}  // namespace keelson::controllers
