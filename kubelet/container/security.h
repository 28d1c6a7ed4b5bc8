// Converts security contexts to CRI. The container's wins over the pod's.
#pragma once

#include <optional>
#include <string>

#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

cri::NamespaceOptions PodNamespaces(const corev1::PodSpec& spec);
bool IsPrivileged(const corev1::Container& container);
// runAsUser; nullopt: the image decides.
std::optional<int64_t> EffectiveUser(const corev1::PodSpec& spec, const corev1::Container& container);

Result<> ApplySandboxSecurity(const corev1::PodSpec& spec, const NodeContext& node, cri::SandboxConfig& out);
// kInvalid: runAsNonRoot forbids the user of the image or the spec.
Result<> ApplyContainerSecurity(const corev1::Pod& pod, const corev1::Container& container,
                                const cri::Image& image, const NodeContext& node, cri::ContainerConfig& out);

}  // namespace keelson::kubelet
