#include "controlplane/scheduler/node_info.h"

#include <algorithm>

namespace keelson::scheduler {

NodeFacts::NodeFacts(const corev1::Node& node, ResourceNames& names)
    : name(node.metadata().name()),
      labels(node.metadata().labels()),
      taints(node.spec().taints()),
      unschedulable(node.spec().unschedulable()),
      allocatable(Resources::From(k8s::ToResourceList(node.status().allocatable()), names)) {
  for (const corev1::Taint& taint : taints) {
    if (taint.effect() == k8s::kPreferNoSchedule) {
      ++prefer_no_schedule;
    } else {
      hard_taints = true;
    }
  }
}

void NodeInfo::AddPod(const PodInfo& pod) {
  used.Add(pod.requests);
  scoring_milli_cpu += pod.scoring.milli_cpu;
  scoring_memory += pod.scoring.memory;
  ports.insert(ports.end(), pod.ports.begin(), pod.ports.end());
}

void NodeInfo::RemovePod(const PodInfo& pod) {
  used.Subtract(pod.requests);
  scoring_milli_cpu -= pod.scoring.milli_cpu;
  scoring_memory -= pod.scoring.memory;
  for (const k8s::HostPort& port : pod.ports) {
    const auto it = std::find(ports.begin(), ports.end(), port);
    if (it != ports.end()) ports.erase(it);
  }
}

}  // namespace keelson::scheduler
