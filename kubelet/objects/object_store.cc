#include "kubelet/objects/object_store.h"

#include <charconv>

namespace keelson::kubelet {

std::unique_ptr<ObjectStore> NewObjectStore(const std::string& strategy,
                                            ObjectStoreDependencies dependencies) {
  if (strategy == "Get") return NewSimpleObjectStore(std::move(dependencies));
  if (strategy == "Cache") return NewCachingObjectStore(std::move(dependencies));
  return NewWatchingObjectStore(std::move(dependencies));
}

std::optional<std::chrono::seconds> ObjectTtl(const corev1::Node* node) {
  if (!node) return std::nullopt;
  const auto& annotations = node->metadata().annotations();
  auto said = annotations.find("node.alpha.kubernetes.io/ttl");
  if (said == annotations.end()) return std::nullopt;
  const std::string& text = said->second;
  int32_t seconds = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace keelson::kubelet
