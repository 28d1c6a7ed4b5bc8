// Applies a resize to running containers, without a restart (KEP-1287).
#pragma once

#include <stop_token>
#include <vector>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/cri/runtime.h"
#include "kubelet/resize/allocations.h"
#include "kubelet/resize/resize_plan.h"

namespace keelson::kubelet {

class Resizer {  // thread safe for different pods
 public:
  Resizer(cri::RuntimeService& runtime, PodCgroups& cgroups, Allocations& allocations)
      : runtime_(runtime), cgroups_(cgroups), allocations_(allocations) {}

  // Widens the pod's cgroup to allow old and new amounts, updates each container, then narrows the cgroup. May be
  // repeated after a failure: what is done is not done again.
  Result<> Apply(const corev1::Pod& granted, const std::vector<ContainerResize>& resizes,
                 const NodeContext& node, std::stop_token stop);

 private:
  Result<> Update(const corev1::Pod& granted, const ContainerResize& resize, const NodeContext& node,
                  std::stop_token stop);
  Result<> CheckUsage(const ContainerResize& resize, std::stop_token stop);
  Result<> CheckUsageOfPod(const corev1::Pod& granted, const ContainerResize& resize);

  cri::RuntimeService& runtime_;
  PodCgroups& cgroups_;
  Allocations& allocations_;
};

}  // namespace keelson::kubelet
