// Why this node does not take a pod, apart from its resources (k8s::CheckAdmission has those).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

// `allowed_sysctls`: names, or prefixes ending in '*', beyond those that are safe on every node.
std::optional<k8s::AdmitFailure> CheckFeatures(const corev1::Pod& pod, const NodeContext& node,
                                               const std::vector<std::string>& allowed_sysctls);

}  // namespace keelson::kubelet
