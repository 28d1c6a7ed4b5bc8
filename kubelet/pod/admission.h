// Admission by what node and runtime support; k8s::CheckAdmission has the rules about resources.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::kubelet {

// Why the node rejects the pod; nullopt: it does not. `allowed_sysctls`: names, or prefixes ending in '*', beyond those that are safe on every node.
std::optional<k8s::AdmitFailure> CheckFeatures(const corev1::Pod& pod, const NodeContext& node,
                                               const std::vector<std::string>& allowed_sysctls);

}  // namespace keelson::kubelet
