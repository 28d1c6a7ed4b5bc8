// What a running container is compared with its spec by: an annotation that this kubelet and upstream's both
// write and read, so that either takes over the other's containers.
#pragma once

#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

// The value of a new container's annotation, in hexadecimal digits. A function of name and image: FNV-1a (32
// bit) of Go's print of the bytes of {"image":...,"name":...}, which is Go's JSON
// (k8s.io/kubernetes/pkg/kubelet/container, HashContainer).
std::string ContainerHash(const corev1::Container& container);

// Whether a container with this annotation was made from the spec. Annotations of earlier Keelson
// kubelets, which hashed in another way, count too: no container restarts because the kubelet is a newer one.
bool IsMadeFrom(const corev1::Container& container, const std::string& hash);

}  // namespace keelson::kubelet
