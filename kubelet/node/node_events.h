// Events about changes of the node's status. Pure.
#pragma once

#include <string>
#include <vector>

#include "lib/api/types.h"

namespace keelson::kubelet {

struct NodeEvent {
  std::string type, reason, message;
  bool operator==(const NodeEvent&) const = default;
};

std::vector<NodeEvent> EventsOfChange(const std::string& name, const corev1::NodeStatus& before,
                                      const corev1::NodeStatus& after);
NodeEvent SchedulableEvent(const std::string& name, bool unschedulable);

}  // namespace keelson::kubelet
