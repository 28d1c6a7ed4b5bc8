// The UID of a static pod, also its annotation kubernetes.io/config.hash: upstream's hash of the manifest, so that
// either kubelet takes over the other's pods.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kubelet/staticpod/go_print.h"
#include "lib/api/types.h"

namespace keelson::kubelet {

// Go's types of a Pod (k8s.io/kubernetes/pkg/apis/core) in Kubernetes 1.36. Each minor version adds
// fields, which changes the UIDs. Volumes that static pods cannot have are names only.
std::string_view PodTypes();

// Where a manifest comes from. `host`: the node's name; `place`: a path or a URL.
struct PodPlace {
  std::string host, place;
  bool file = true;
};
// `pod`: the manifest with defaults, without what the kubelet adds. nullopt: it has something that is not in `types`.
std::optional<std::string> UpstreamPodUid(const corev1::Pod& pod, const PodPlace& place,
                                          const GoTypes& types);

}  // namespace keelson::kubelet
