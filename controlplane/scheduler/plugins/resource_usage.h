// How much of a resource is requested on a node, with the pod on it, for scores.
#pragma once

#include <string>
#include <vector>

#include "controlplane/scheduler/plugins/plugins.h"
#include "controlplane/scheduler/types/node_info.h"

namespace keelson::scheduler {

class ScoredResource {
 public:
  ScoredResource(const ResourceWeight& resource, NameIds& names);

  struct Usage {
    int64_t requested = 0, capacity = 0;  // capacity 0: the resource does not count
    int64_t by_pod = 0;                   // the pod's share of `requested`
  };
  // `with_defaults`: containers without requests count for the defaults.
  Usage Of(const PodInfo& pod, const NodeInfo& node, bool with_defaults) const;
  int64_t weight() const { return weight_; }

 private:
  enum class Kind { kCpu, kMemory, kEphemeralStorage, kOther };
  Kind kind_;
  uint32_t id_ = 0;  // of kOther
  int64_t weight_;
};

std::vector<ScoredResource> Scored(const std::vector<ResourceWeight>& resources, NameIds& names);

}  // namespace keelson::scheduler
