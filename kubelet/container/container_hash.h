// The hash annotation that says which spec a container was made from. It is upstream's, so that either kubelet takes
// over the other's containers.
#pragma once

#include <string>

#include "lib/api/types.h"

namespace keelson::kubelet {

// The annotation of a new container, in hexadecimal. Depends on name and image: FNV-1a (32 bit) of the bytes of Go's
// JSON {"image":...,"name":...}, as Go prints them (k8s.io/kubernetes/pkg/kubelet/container, HashContainer).
std::string ContainerHash(const corev1::Container& container);

// Whether a container with this annotation was made from the spec. Also accepts the hashes of earlier Keelson
// releases, so that an upgrade restarts no container.
bool IsMadeFrom(const corev1::Container& container, const std::string& hash);

}  // namespace keelson::kubelet
