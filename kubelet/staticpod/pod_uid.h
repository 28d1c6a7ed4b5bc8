// The UID of a static pod, which is its annotation kubernetes.io/config.hash: a hash of the manifest, and the
// same as upstream's kubelet gives, so that either takes over the other's pods.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kubelet/staticpod/go_print.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// Go's types of a Pod (k8s.io/kubernetes/pkg/apis/core) in Kubernetes 1.36. Each minor version has some
// fields more, and with them other UIDs. Volumes that static pods cannot have are names only.
std::string_view PodTypes();

// The pod as its manifest says, with defaults, and nothing that the kubelet adds. `host`, with `place` a file
// or else a URL, is the node's name. Nullopt when the pod has something that is not in `types`.
struct PodPlace {
  std::string host, place;
  bool file = true;
};
std::optional<std::string> UpstreamPodUid(const corev1::Pod& pod, const PodPlace& place,
                                          const GoTypes& types);

}  // namespace keelson::kubelet
