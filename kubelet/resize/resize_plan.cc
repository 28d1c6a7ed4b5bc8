#include "kubelet/resize/resize_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/k8s/pods/fit.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

bool Differs(const k8s::QuantityMap& a, const k8s::QuantityMap& b, const std::string& name) {
  auto in_a = a.find(name), in_b = b.find(name);
  if (in_a == a.end() || in_b == b.end()) return (in_a == a.end()) != (in_b == b.end());
  return api::Amount::Of(in_a->second) != api::Amount::Of(in_b->second);
}

bool Changes(const corev1::ResourceRequirements& from, const corev1::ResourceRequirements& to,
             const std::string& name) {
  return Differs(from.requests(), to.requests(), name) || Differs(from.limits(), to.limits(), name);
}

using Containers = google::protobuf::RepeatedPtrField<corev1::Container>;

bool AnyChanges(const Containers& a, const Containers& b, const std::string& name) {
  for (int i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (Changes(a[i].resources(), b[i].resources(), name)) return true;
  }
  return false;
}

bool AnyChanges(const corev1::Pod& a, const corev1::Pod& b, const std::string& name) {
  return AnyChanges(a.spec().containers(), b.spec().containers(), name) ||
         AnyChanges(a.spec().init_containers(), b.spec().init_containers(), name);
}

bool WantsRestart(const corev1::Container& container, const ContainerResize& resize,
                  const std::set<std::string>& inherited) {
  for (const auto& policy : container.resize_policy()) {
    if (policy.restart_policy() == "RestartContainer" &&
        (Changes(resize.from, resize.to, policy.resource_name()) ||
         inherited.count(policy.resource_name()))) {
      return true;
    }
  }
  return false;
}

// Limits that the container takes from its pod and that differ from those applied to it.
std::set<std::string> InheritedChanges(const corev1::Container& container,
                                       const corev1::ResourceRequirements& told,
                                       const corev1::ResourceRequirements& of_pod) {
  std::set<std::string> out;
  for (const char* name : {"cpu", "memory"}) {
    if (!container.resources().limits().count(name) && Differs(told.limits(), of_pod.limits(), name)) {
      out.insert(name);
    }
  }
  return out;
}

corev1::Container* Find(corev1::PodSpec& spec, const std::string& name) {
  for (auto* list : {spec.mutable_init_containers(), spec.mutable_containers()}) {
    for (corev1::Container& container : *list) {
      if (container.name() == name) return &container;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<ResizeRefusal> RefuseResize(const corev1::Pod& wish, const corev1::Pod& granted,
                                          const NodeRoom& room) {
  if (k8s::IsStatic(wish)) {
    return ResizeRefusal{"Infeasible", "In-place resize of static-pods is not supported", "static_pod"};
  }
  if (k8s::QosClass(wish) == k8s::kGuaranteed) {
    if (room.static_cpus && AnyChanges(wish, granted, "cpu")) {
      return ResizeRefusal{"Infeasible",
                           "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy",
                           "guaranteed_pod_cpu_manager_static_policy"};
    }
    if (room.static_memory && AnyChanges(wish, granted, "memory")) {
      return ResizeRefusal{"Infeasible",
                           "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy",
                           "guaranteed_pod_memory_manager_static_policy"};
    }
  }
  k8s::ResourceList requests;
  for (auto& [name, amount] : k8s::PodRequests(wish)) {
    if (name == "cpu" || name == "memory") requests[name] = amount;
  }
  for (const char* name : {"memory", "cpu"}) {
    int64_t requested = k8s::ScaledValue(name, k8s::AmountOf(requests, name));
    int64_t capacity = k8s::ScaledValue(name, k8s::AmountOf(room.allocatable, name));
    if (requested > capacity) {
      return ResizeRefusal{"Infeasible",
                           fmt::format("Node didn't have enough capacity: {}, requested: {}, capacity: {}",
                                       name, requested, capacity),
                           "insufficient_node_allocatable"};
    }
  }
  k8s::ResourceList allocatable = room.allocatable;
  allocatable["pods"] =
      api::Amount::FromInt(k8s::AmountOf(room.used_by_others, "pods").Value() + 1);  // it is here
  auto lacking = k8s::CheckResources(requests, allocatable, room.used_by_others);
  if (lacking.empty()) return std::nullopt;
  const auto& first = lacking.front();
  return ResizeRefusal{
      "Deferred",
      fmt::format("Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
                  first.resource, first.requested, first.used, first.capacity),
      ""};
}

ResizePlan PlanResize(const corev1::Pod& granted, const PodRuntimeStatus& status,
                      const ActualResources& actual, const ActualPodResources& of_pod) {
  ResizePlan plan;
  if (of_pod.cgroup && !SameResources(*of_pod.cgroup, granted.spec().resources())) {
    plan.update.push_back({"", "", *of_pod.cgroup, Resizable(granted.spec().resources())});
  }
  auto consider = [&](const corev1::Container& container) {
    const ContainerRecord* record = status.Latest(container.name());
    if (!record || record->state != cri::ContainerState::kRunning) return;
    auto has = actual(*record);
    if (!has) return;
    const auto told = of_pod.told ? of_pod.told(*record) : std::nullopt;
    const auto inherited =
        told ? InheritedChanges(container, *told, granted.spec().resources()) : std::set<std::string>();
    if (inherited.empty() && SameResources(*has, container.resources())) return;
    ContainerResize resize{container.name(), record->id, std::move(*has), Resizable(container.resources())};
    if (WantsRestart(container, resize, inherited)) {
      plan.restart.insert(container.name());
    } else {
      plan.update.push_back(std::move(resize));
    }
  };
  for (const auto& container : granted.spec().init_containers()) consider(container);
  for (const auto& container : granted.spec().containers()) consider(container);
  return plan;
}

corev1::Pod LargerOfBoth(const corev1::Pod& granted, const std::vector<ContainerResize>& resizes) {
  corev1::Pod out = granted;
  for (const ContainerResize& resize : resizes) {
    corev1::Container* container = Find(*out.mutable_spec(), resize.container);
    if (!container && !resize.container.empty()) continue;
    corev1::ResourceRequirements& resources =
        container ? *container->mutable_resources() : *out.mutable_spec()->mutable_resources();
    auto larger = [](const k8s::QuantityMap& from, k8s::QuantityMap& to, bool absent_is_all) {
      for (const char* name : {"cpu", "memory"}) {
        auto old = from.find(name);
        auto now = to.find(name);
        if (old == from.end()) {
          if (absent_is_all) to.erase(name);
        } else if (now == to.end()) {
          if (!absent_is_all) to[name] = old->second;
        } else if (api::Amount::Of(old->second) > api::Amount::Of(now->second)) {
          now->second = old->second;
        }
      }
    };
    larger(resize.from.requests(), *resources.mutable_requests(), false);
    larger(resize.from.limits(), *resources.mutable_limits(), true);
  }
  return out;
}

void SetResizeConditions(const corev1::Pod& pod, const ResizeState& state, const metav1::Time& now,
                         corev1::PodStatus& status) {
  auto add = [&](const char* type, const std::string& reason, const std::string& message) {
    corev1::PodCondition& condition = *status.add_conditions();
    condition.set_type(type);
    condition.set_status("True");
    condition.set_reason(reason);
    condition.set_message(message);
    condition.set_observed_generation(pod.metadata().generation());
    *condition.mutable_last_transition_time() = now;
    for (const auto& old : pod.status().conditions()) {
      if (old.type() == type && old.status() == "True" && old.reason() == reason) {
        *condition.mutable_last_transition_time() = old.last_transition_time();
      }
    }
  };
  auto* conditions = status.mutable_conditions();
  conditions->erase(std::remove_if(conditions->begin(), conditions->end(),
                                   [](const auto& condition) {
                                     return condition.type() == "PodResizePending" ||
                                            condition.type() == "PodResizeInProgress";
                                   }),
                    conditions->end());
  if (!state.pending.empty()) add("PodResizePending", state.pending, state.message);
  if (state.in_progress) add("PodResizeInProgress", state.error.empty() ? "" : "Error", state.error);
}

}  // namespace keelson::kubelet
