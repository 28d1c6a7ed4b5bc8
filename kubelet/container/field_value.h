// The downward API: pod fields and container resources, for variables and volumes.
#pragma once

#include <string>
#include <string_view>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

// metadata.{name,namespace,uid,labels,annotations}, metadata.labels['k'], metadata.annotations['k'],
// spec.{nodeName,serviceAccountName}, status.{podIP,podIPs,hostIP,hostIPs}. kInvalid for any other path.
Result<std::string> FieldValue(const corev1::Pod& pod, std::string_view field_path);

// limits.cpu, requests.memory, ... of a container, divided by the divisor and rounded up. An unset limit is
// the node's allocatable amount. `default_container`: if the selector names none.
Result<std::string> ResourceValue(const corev1::Pod& pod, const corev1::ResourceFieldSelector& selector,
                                  std::string_view default_container, const k8s::ResourceList& allocatable);

}  // namespace keelson::kubelet
