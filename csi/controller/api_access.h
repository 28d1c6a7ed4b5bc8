// How the API server is reached: by a kubeconfig, or as the pod's ServiceAccount.
#pragma once

#include <string>

#include "lib/client/transport.h"

namespace keelson::csi::controller {

// `kubeconfig` empty: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT and the files that the kubelet mounts in every
// pod (client-go's in-cluster configuration). kInvalid: this is no pod.
Result<client::RestConfig> ApiAccess(const std::string& kubeconfig);

// The namespace of the pod; "default" outside.
std::string OwnNamespace();

}  // namespace keelson::csi::controller
