// A container's environment: Services, envFrom, env, with references resolved.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/container/node_context.h"
#include "kubelet/container/objects.h"
#include "kubelet/container/volume_paths.h"

namespace keelson::kubelet {

using Env = std::vector<std::pair<std::string, std::string>>;

// WEB_SERVICE_HOST, WEB_SERVICE_PORT, WEB_PORT, WEB_PORT_80_TCP, ... of each Service with a cluster IP.
std::map<std::string, std::string> ServiceEnv(
    const std::vector<std::shared_ptr<const corev1::Service>>& services);

// Services come first, then envFrom, then env: later ones win. `pod.status` must hold the pod's and the host's
// addresses. kInvalid: a required ConfigMap, Secret or key is missing, with the message that users know from
// CreateContainerConfigError.
Result<Env> BuildEnv(const corev1::Pod& pod, const corev1::Container& container, ObjectSource& objects,
                     const NodeContext& node, const VolumePaths& volumes = {});

}  // namespace keelson::kubelet
