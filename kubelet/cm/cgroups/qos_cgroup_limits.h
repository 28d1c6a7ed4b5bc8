// Limits of the QoS cgroups (kubepods, burstable, besteffort), from the requests of the pods in them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

struct QosCgroupLimits {
  linux::CgroupLimits all, burstable, best_effort;
  bool operator==(const QosCgroupLimits&) const = default;
};

// `percent_reserved` (qosReserved, memory): this part of the requests of a class is kept from lower classes, out of
// `pods_memory` for all pods. Pure.
QosCgroupLimits PlanQosCgroupLimits(const std::vector<std::shared_ptr<const corev1::Pod>>& pods,
                                    const NodeContext& node, std::optional<int> percent_reserved,
                                    int64_t pods_memory);

// {"memory": "50%"} -> 50; empty -> nullopt. kInvalid with upstream's message.
Result<std::optional<int>> ParseQosReserved(const std::map<std::string, std::string>& reserved);

}  // namespace keelson::kubelet
