// Builds the CRI configuration of a pod's sandbox.
#pragma once

#include <string>

#include "kubelet/container/network_files.h"
#include "kubelet/container/node_context.h"
#include "kubelet/cri/types.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// `host_dns` is the node's resolver configuration; `cgroup_parent` the pod's cgroup, in the form that the
// runtime's cgroup driver takes.
// kInvalid: the host name is too long, or the seccomp profile is invalid.
Result<cri::SandboxConfig> BuildSandboxConfig(const corev1::Pod& pod, const NodeContext& node,
                                              const DnsConfig& host_dns, const std::string& cgroup_parent,
                                              uint32_t attempt);

}  // namespace keelson::kubelet
