#include "controlplane/scheduler/types/node_info.h"

#include <algorithm>

namespace keelson::scheduler {

NodeFacts::NodeFacts(const corev1::Node& node, NameIds& resources)
    : name(node.metadata().name()),
      labels(node.metadata().labels()),
      taints(node.spec().taints()),
      unschedulable(node.spec().unschedulable()),
      allocatable(Resources::From(k8s::ToResourceList(node.status().allocatable()), resources)),
      features(node.status().declared_features().begin(), node.status().declared_features().end()) {
  for (const corev1::Taint& taint : taints) {
    if (taint.effect() == k8s::kPreferNoSchedule) {
      ++prefer_no_schedule;
    } else {
      hard_taints = true;
    }
  }
  for (const corev1::ContainerImage& image : node.status().images()) {
    for (const std::string& image_name : image.names()) images.emplace_back(image_name, image.size_bytes());
  }
  std::sort(images.begin(), images.end());
  std::sort(features.begin(), features.end());
}

bool NodeFacts::SameTaints(const NodeFacts& other) const {
  return std::equal(taints.begin(), taints.end(), other.taints.begin(), other.taints.end(),
                    [](const corev1::Taint& x, const corev1::Taint& y) {
                      return k8s::SameTaint(x, y) && x.value() == y.value();
                    });
}

bool NodeFacts::SamePlace(const NodeFacts& other) const {
  return unschedulable == other.unschedulable && labels == other.labels && SameTaints(other);
}

bool NodeFacts::operator==(const NodeFacts& other) const {
  return SamePlace(other) && allocatable == other.allocatable && images == other.images &&
         features == other.features;
}

void NodeInfo::AddPod(const PodPtr& pod) {
  requested.Add(pod->requests);
  non_zero_requested_milli_cpu += pod->non_zero_requests.milli_cpu;
  non_zero_requested_memory += pod->non_zero_requests.memory;
  ports.insert(ports.end(), pod->shape->ports.begin(), pod->shape->ports.end());
  pods.push_back(pod);
}

void NodeInfo::RemovePod(const PodInfo& pod) {
  // The latest are the likeliest to go: those that were tried.
  const auto it =
      std::find_if(pods.rbegin(), pods.rend(), [&](const PodPtr& p) { return p->key == pod.key; });
  if (it == pods.rend()) return;
  const PodPtr gone = *it;
  pods.erase(std::next(it).base());
  requested.Subtract(gone->requests);
  non_zero_requested_milli_cpu -= gone->non_zero_requests.milli_cpu;
  non_zero_requested_memory -= gone->non_zero_requests.memory;
  for (const k8s::HostPort& port : gone->shape->ports) {
    const auto taken = std::find(ports.begin(), ports.end(), port);
    if (taken != ports.end()) ports.erase(taken);
  }
}

}  // namespace keelson::scheduler
