#include "controlplane/scheduler/plugins/resource_usage.h"

namespace keelson::scheduler {

namespace {

ScoredResource::Usage Together(int64_t used, int64_t asked, int64_t capacity) {
  return {used + asked, capacity, asked};
}

}  // namespace

ScoredResource::ScoredResource(const ResourceWeight& resource, NameIds& names) : weight_(resource.weight) {
  if (resource.name == "cpu") {
    kind_ = Kind::kCpu;
  } else if (resource.name == "memory") {
    kind_ = Kind::kMemory;
  } else if (resource.name == "ephemeral-storage") {
    kind_ = Kind::kEphemeralStorage;
  } else {
    kind_ = Kind::kOther;
    id_ = names.Id(resource.name);
  }
}

ScoredResource::Usage ScoredResource::Of(const PodInfo& pod, const NodeInfo& node, bool with_defaults) const {
  switch (kind_) {
    case Kind::kCpu:
      return with_defaults
                 ? Together(node.non_zero_requested_milli_cpu, pod.non_zero_requests.milli_cpu,
                            node.allocatable.milli_cpu)
                 : Together(node.requested.milli_cpu, pod.requests.milli_cpu, node.allocatable.milli_cpu);
    case Kind::kMemory:
      return with_defaults ? Together(node.non_zero_requested_memory, pod.non_zero_requests.memory,
                                      node.allocatable.memory)
                           : Together(node.requested.memory, pod.requests.memory, node.allocatable.memory);
    case Kind::kEphemeralStorage:
      return Together(node.requested.ephemeral_storage, pod.requests.ephemeral_storage,
                      node.allocatable.ephemeral_storage);
    case Kind::kOther:
      break;
  }
  const int64_t asked = pod.requests.Other(id_);
  // Of no interest to a pod that asks for none.
  if (asked == 0) return {};
  return Together(node.requested.Other(id_), asked, node.allocatable.Other(id_));
}

std::vector<ScoredResource> Scored(const std::vector<ResourceWeight>& resources, NameIds& names) {
  std::vector<ScoredResource> out;
  for (const ResourceWeight& resource : resources) out.emplace_back(resource, names);
  return out;
}

}  // namespace keelson::scheduler
