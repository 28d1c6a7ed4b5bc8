// Parses manifests of static pods, and gives the pods their node-specific name and a UID that depends on the manifest
// only.
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
  // Pods that already run, whose UIDs stay; null: there are none.
  const RunningPods* running = nullptr;
  WallTime changed = WallTime::max();  // of a file: its modification time
};

// `text`: a Pod, or from a URL also a PodList, in YAML or JSON. An error also for fields that static pods may not
// have.
Result<std::vector<corev1::Pod>> ParseStaticPods(std::string_view text, const PodOrigin& origin);

inline constexpr char kConfigSeenAnnotation[] = "kubernetes.io/config.seen";

}  // namespace keelson::kubelet
