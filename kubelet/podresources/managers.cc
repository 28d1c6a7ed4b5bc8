#include "kubelet/podresources/managers.h"

namespace keelson::kubelet::podresources {
namespace {

std::vector<int64_t> ToList(const CpuSet& cpus) { return {cpus.begin(), cpus.end()}; }

// One block a type of memory, each near to the same nodes.
void AddBlocks(const MemoryAmounts& amounts, const std::vector<int64_t>& nodes,
               std::vector<MemoryBlock>& out) {
  for (const auto& [type, bytes] : amounts) {
    if (bytes > 0) out.push_back({type, static_cast<uint64_t>(bytes), nodes});
  }
}

std::vector<int64_t> ToList(const NumaMask& mask) {
  std::vector<int64_t> out;
  for (size_t node = 0; node < mask.size(); ++node) {
    if (mask.test(node)) out.push_back(static_cast<int64_t>(node));
  }
  return out;
}

}  // namespace

ContainerResources ManagersSource::ResourcesOf(const corev1::Pod& pod, const corev1::Container& container) {
  const std::string& uid = pod.metadata().uid();
  ContainerResources out;
  out.devices = managers_.devices.ContainerDevices(uid, container.name());
  if (managers_.cpus) out.cpus = ToList(managers_.cpus->Exclusive(uid, container.name()));
  if (managers_.memory) {
    if (auto grant = managers_.memory->Granted(uid, container.name())) {
      AddBlocks(grant->amounts, ToList(grant->nodes), out.memory);
    }
  }
  return out;
}

AllocatableResources ManagersSource::Allocatable() {
  AllocatableResources out;
  out.devices = managers_.devices.AllocatableDevices();
  if (managers_.cpus) out.cpus = ToList(managers_.cpus->Allocatable());
  if (managers_.memory) {
    for (const auto& [node, amounts] : managers_.memory->allocatable()) {
      AddBlocks(amounts, {node}, out.memory);
    }
  }
  return out;
}

}  // namespace keelson::kubelet::podresources
