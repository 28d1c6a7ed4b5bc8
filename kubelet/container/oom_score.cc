#include <algorithm>
#include <limits>

#include "kubelet/container/critical.h"
#include "kubelet/container/resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/pods/qos.h"

namespace keelson::kubelet {

namespace {

constexpr int64_t kGuaranteed = -997, kBestEffort = 1000;
constexpr char kNodeCriticalClass[] = "system-node-critical";

bool IsNodeCritical(const corev1::Pod& pod) {
  return IsCriticalPod(pod) && pod.spec().priority_class_name() == kNodeCriticalClass;
}

int64_t MemoryRequest(const corev1::Container& container) {
  return k8s::AmountOf(k8s::ToResourceList(container.resources().requests()), "memory").Value();
}

// Each container's part of what the pod as a whole asks for beyond what its containers do.
int64_t PartOfPodRequest(const corev1::Pod& pod) {
  const auto& spec = pod.spec();
  const int64_t whole = k8s::AmountOf(k8s::ToResourceList(spec.resources().requests()), "memory").Value();
  if (whole == 0) return 0;
  k8s::PodResourcesOptions options;
  options.exclude_overhead = options.exclude_pod_level = true;
  const int64_t asked = k8s::AmountOf(k8s::PodRequests(pod, options), "memory").Value();
  return (whole - asked) / std::max(1, spec.containers_size() + spec.init_containers_size());
}

bool IsSidecarOf(const corev1::Pod& pod, const corev1::Container& container) {
  return std::any_of(
      pod.spec().init_containers().begin(), pod.spec().init_containers().end(),
      [&](const auto& item) { return item.name() == container.name() && k8s::IsSidecar(item); });
}

}  // namespace

int OomScoreAdjust(const corev1::Pod& pod, const corev1::Container& container, int64_t memory_capacity) {
  const std::string_view qos = k8s::QosClass(pod);
  if (IsNodeCritical(pod) || qos == k8s::kGuaranteed) return static_cast<int>(kGuaranteed);
  if (qos == k8s::kBestEffort || memory_capacity <= 0) return static_cast<int>(kBestEffort);
  int64_t request = MemoryRequest(container);
  if (IsSidecarOf(pod, container)) {
    // A sidecar outlives the container that needs it least.
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& item : pod.spec().containers()) least = std::min(least, MemoryRequest(item));
    request = std::max(request, least);
  }
  const int64_t score = 1000 - 1000 * (request + PartOfPodRequest(pod)) / memory_capacity;
  return static_cast<int>(std::clamp<int64_t>(score, 1000 + kGuaranteed, kBestEffort - 1));
}

}  // namespace keelson::kubelet
