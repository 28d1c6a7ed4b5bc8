// Whether the node takes a pod; room for critical ones is made.
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
    std::function<std::shared_ptr<const corev1::Node>()> node;  // as the API has it; null: not known
    std::function<std::vector<PodPtr>(const std::string& except_uid)> active;
    std::function<void(const corev1::Pod& pod)> preempt;  // it makes room
    const EvictionManager& evictions;
    // What device plugins offer, for a pod that may have some of it already; may be empty.
    std::function<void(const std::string& uid, k8s::ResourceList& allocatable)> add_devices;
  };
  Admission(Dependencies dependencies, const NodeOptions& node, k8s::ResourceList allocatable)
      : deps_(std::move(dependencies)), own_(NewNode(node)), allocatable_(std::move(allocatable)) {}

  // Nullopt: it may run.
  std::optional<k8s::AdmitFailure> Admit(const corev1::Pod& pod) const;

 private:
  corev1::Node Node(const std::string& uid) const;

  const Dependencies deps_;
  const corev1::Node own_;  // for as long as there is no API server to ask
  const k8s::ResourceList allocatable_;
};

// The pods whose end lets a critical pod fit: of the lowest priority and class first, and no more than
// needed. Empty: nothing helps. Pure.
std::vector<const corev1::Pod*> PlanPreemption(const corev1::Pod& pod, const corev1::Node& node,
                                               const std::vector<const corev1::Pod*>& others);

}  // namespace keelson::kubelet
