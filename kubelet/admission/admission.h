// Admission of pods to the node: node conditions, resources, taints. Critical pods preempt others.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kubelet/eviction/manager.h"
#include "kubelet/node/registration.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

class Admission {  // thread safe
 public:
  using PodPtr = std::shared_ptr<const corev1::Pod>;
  struct Dependencies {
    std::function<std::shared_ptr<const corev1::Node>()> node;  // from the informer; null: not known
    std::function<std::vector<PodPtr>(const std::string& except_uid)> active;
    std::function<void(const corev1::Pod& pod)> preempt;  // terminates the pod, to make room
    const EvictionManager& evictions;
    // ContainerManager::UpdatePluginResources; may be empty.
    std::function<void(const std::string& uid, k8s::ResourceList& allocatable)> add_devices;
  };
  Admission(Dependencies dependencies, const NodeOptions& node, k8s::ResourceList allocatable)
      : deps_(std::move(dependencies)), own_(NewNode(node)), allocatable_(std::move(allocatable)) {}

  // Why the pod is rejected; nullopt: it is admitted. May call preempt for others.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) const;

 private:
  corev1::Node Node(const std::string& uid) const;

  const Dependencies deps_;
  const corev1::Node own_;  // until the informer has the node
  const k8s::ResourceList allocatable_;
};

// The pods to preempt so that a critical pod fits: lowest priority and QoS class first, and no more than needed. Empty:
// preemption does not help. Pure.
std::vector<const corev1::Pod*> PlanPreemption(const corev1::Pod& pod, const corev1::Node& node,
                                               const std::vector<const corev1::Pod*>& others);

}  // namespace keelson::kubelet
