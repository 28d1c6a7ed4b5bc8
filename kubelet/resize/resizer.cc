#include "kubelet/resize/resizer.h"

#include <fmt/format.h>

#include "kubelet/container/resources.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

std::optional<int64_t> MemoryLimit(const corev1::ResourceRequirements& resources) {
  auto it = resources.limits().find("memory");
  if (it == resources.limits().end()) return std::nullopt;
  return api::Amount::Of(it->second).Value();
}

}  // namespace

Result<> Resizer::Apply(const corev1::Pod& granted, const std::vector<ContainerResize>& resizes,
                        const NodeContext& node, std::stop_token stop) {
  const ContainerResize* pod = !resizes.empty() && resizes[0].container.empty() ? &resizes[0] : nullptr;
  if (pod) KEELSON_RETURN_IF_ERROR(CheckUsageOfPod(granted, *pod));
  KEELSON_RETURN_IF_ERROR(cgroups_.Ensure(LargerOfBoth(granted, resizes), node));
  Result<> first;  // one container that cannot be changed does not hold up the others
  for (const ContainerResize& resize : resizes) {
    if (&resize == pod) continue;
    if (auto done = Update(granted, resize, node, stop); !done && first) first = done;
  }
  KEELSON_RETURN_IF_ERROR(first);
  KEELSON_RETURN_IF_ERROR(cgroups_.Ensure(granted, node));
  return pod ? allocations_.SetActual(granted.metadata().uid(), "", pod->to) : Result<>();
}

Result<> Resizer::Update(const corev1::Pod& granted, const ContainerResize& resize, const NodeContext& node,
                         std::stop_token stop) {
  KEELSON_RETURN_IF_ERROR(CheckUsage(resize, stop));
  const corev1::Container* container = k8s::FindContainer(granted.spec(), resize.container);
  if (!container) return Error(Code::kNotFound, "no container " + resize.container);
  cri::LinuxResources resources = ContainerResources(granted, *container, node);
  if (resources.cpu_quota == 0) resources.cpu_quota = -1;  // zero would leave what is there
  KEELSON_RETURN_IF_ERROR(runtime_.UpdateContainerResources(resize.id, resources, stop));
  return allocations_.SetActual(granted.metadata().uid(), resize.id, resize.to, &granted.spec().resources());
}

Result<> Resizer::CheckUsageOfPod(const corev1::Pod& granted, const ContainerResize& resize) {
  auto old = MemoryLimit(resize.from), now = MemoryLimit(resize.to);
  if (!now || (old && *old <= *now)) return {};
  const auto used = cgroups_.Usage(granted).memory_bytes;
  if (!used || static_cast<int64_t>(*used) <= *now) return {};
  return Error(Code::kConflict,
               fmt::format("attempting to set pod memory limit ({}) below current usage ({})", *now, *used));
}

// The kernel refuses a limit that is below what is in use, or kills to get there.
Result<> Resizer::CheckUsage(const ContainerResize& resize, std::stop_token stop) {
  auto old = MemoryLimit(resize.from), now = MemoryLimit(resize.to);
  if (!now || (old && *old <= *now)) return {};
  cri::Filter filter;
  filter.id = resize.id;
  KEELSON_ASSIGN_OR_RETURN(auto stats, runtime_.ListContainerStats(filter, stop));
  for (const auto& item : stats) {
    if (item.id != resize.id || !item.memory_usage_bytes) continue;
    if (static_cast<int64_t>(*item.memory_usage_bytes) > *now) {
      return Error(
          Code::kConflict,
          fmt::format("attempting to set container \"{}\" memory limit ({}) below current usage ({})",
                      resize.container, *now, *item.memory_usage_bytes));
    }
  }
  return {};
}

}  // namespace keelson::kubelet
