// Recognizes pause images by name: registry.k8s.io/pause:3.10 and others.
#pragma once

#include <string_view>

namespace keelson::kubelet::cri {

inline bool IsPauseImage(std::string_view tag) {
  const size_t slash = tag.rfind('/');
  return tag.substr(slash == std::string_view::npos ? 0 : slash + 1).starts_with("pause:");
}

}  // namespace keelson::kubelet::cri
