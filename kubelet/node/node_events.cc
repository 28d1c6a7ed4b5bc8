#include "kubelet/node/node_events.h"

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

struct Row {
  const char *condition, *on, *off;
  bool of_new_ones;  // told even when the condition was not there before
};

constexpr Row kRows[] = {
    {"MemoryPressure", "NodeHasInsufficientMemory", "NodeHasSufficientMemory", true},
    {"DiskPressure", "NodeHasDiskPressure", "NodeHasNoDiskPressure", true},
    {"PIDPressure", "NodeHasInsufficientPID", "NodeHasSufficientPID", true},
    {"Ready", "NodeReady", "NodeNotReady", false},
};

NodeEvent StatusEvent(const std::string& name, const std::string& event) {
  return {"Normal", event, "Node " + name + " status is now: " + event};
}

}  // namespace

std::vector<NodeEvent> EventsOfChange(const std::string& name, const corev1::NodeStatus& before,
                                      const corev1::NodeStatus& after) {
  std::vector<NodeEvent> out;
  const std::string &old_boot = before.node_info().boot_id(), &boot = after.node_info().boot_id();
  if (!old_boot.empty() && old_boot != boot) {
    out.push_back({"Warning", "Rebooted", "Node " + name + " has been rebooted, boot id: " + boot});
  }
  for (const Row& row : kRows) {
    const corev1::NodeCondition* was = k8s::FindCondition(before, row.condition);
    const corev1::NodeCondition* is = k8s::FindCondition(after, row.condition);
    if (!is || (was ? was->status() == is->status() : !row.of_new_ones)) continue;
    out.push_back(StatusEvent(name, is->status() == "True" ? row.on : row.off));
  }
  return out;
}

NodeEvent SchedulableEvent(const std::string& name, bool unschedulable) {
  return StatusEvent(name, unschedulable ? "NodeNotSchedulable" : "NodeSchedulable");
}

}  // namespace keelson::kubelet
