// What the pods of a class of service are given as a whole, by what they have asked for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/linux/cgroup.h"

namespace keelson::kubelet {

struct ClassLimits {
  linux::CgroupLimits all, burstable, best_effort;
  bool operator==(const ClassLimits&) const = default;
};

// `percent_reserved` (qosReserved, memory): so much of their requests is kept from the classes below, of
// `pods_memory` in all. Pure.
ClassLimits PlanClasses(const std::vector<std::shared_ptr<const corev1::Pod>>& pods, const NodeContext& node,
                        std::optional<int> percent_reserved, int64_t pods_memory);

// {"memory": "50%"} -> 50. kInvalid in upstream's words.
Result<std::optional<int>> ParseQosReserved(const std::map<std::string, std::string>& reserved);

}  // namespace keelson::kubelet
