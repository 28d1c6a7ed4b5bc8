// Pods from manifests, made into what the kubelet runs: named after the node, with an identity that is the
// same as long as the manifest is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kubelet/staticpod/running_pods.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct PodOrigin {
  std::string source;  // "file" or "http": the annotation kubernetes.io/config.source
  std::string place;   // path or URL
  std::string node_name;
  // Pods that ran before, whose identity stays; null: there are none.
  const RunningPods* running = nullptr;
  WallTime changed = WallTime::max();  // of a file: when it was touched last
};

// A Pod, or from a URL also a PodList; YAML or JSON. What a pod of the node itself may not have is an error.
Result<std::vector<corev1::Pod>> ParseStaticPods(std::string_view text, const PodOrigin& origin);

inline constexpr char kConfigSeenAnnotation[] = "kubernetes.io/config.seen";

}  // namespace keelson::kubelet
