#include "kubelet/cm/devices/selection.h"

#include <algorithm>

#include "kubelet/cm/devices/hints.h"

namespace keelson::kubelet::devices {
namespace {

// Moves up to `missing` from `from` to `taken`.
void Take(const Ids& from, Ids& taken, size_t& missing) {
  for (const std::string& id : from) {
    if (missing == 0) return;
    if (taken.insert(id).second) --missing;
  }
}

struct ByAffinity {
  Ids aligned, unaligned, nowhere;
};

ByAffinity Sort(const DeviceRequest& request) {
  ByAffinity out;
  bool has_topology = std::any_of(request.devices.begin(), request.devices.end(),
                                  [](const auto& item) { return item.second.nodes.has_value(); });
  if (!has_topology || !request.affinity.nodes) {
    out.nowhere = request.free;
    return out;
  }
  for (const std::string& id : request.free) {
    const NumaNodes& nodes = request.devices.at(id).nodes;
    if (!nodes || nodes->empty()) {
      out.nowhere.insert(id);
      continue;
    }
    bool near = std::any_of(nodes->begin(), nodes->end(),
                            [&](int64_t node) { return Contains(*request.affinity.nodes, node); });
    (near ? out.aligned : out.unaligned).insert(id);
  }
  return out;
}

}  // namespace

Result<DevicePlan> PlanDevices(const DeviceRequest& request) {
  DevicePlan plan;
  plan.missing = request.required;
  Take(request.reusable, plan.taken, plan.missing);
  if (plan.missing == 0) return plan;
  if (request.free.size() < plan.missing) {
    return Error(Code::kInvalid, "requested number of devices unavailable for " + request.resource +
                                     ". Requested: " + std::to_string(plan.missing) +
                                     ", Available: " + std::to_string(request.free.size()));
  }
  ByAffinity sorted = Sort(request);
  if (plan.missing < sorted.aligned.size()) {
    plan.offered = sorted.aligned;
    plan.order = {std::move(sorted.aligned)};
    return plan;
  }
  // All that are aligned, whatever the plugin would say: that is what the topology manager promised.
  Take(sorted.aligned, plan.taken, plan.missing);
  if (plan.missing == 0) return plan;
  std::set_difference(request.free.begin(), request.free.end(), plan.taken.begin(), plan.taken.end(),
                      std::inserter(plan.offered, plan.offered.end()));
  plan.order = {std::move(sorted.unaligned), std::move(sorted.nowhere)};
  return plan;
}

Ids ChooseDevices(const DevicePlan& plan, const Ids& preferred) {
  Ids taken = plan.taken, accepted;
  size_t missing = plan.missing;
  std::set_intersection(preferred.begin(), preferred.end(), plan.offered.begin(), plan.offered.end(),
                        std::inserter(accepted, accepted.end()));
  Take(accepted, taken, missing);
  for (const Ids& from : plan.order) Take(from, taken, missing);
  return taken;
}

}  // namespace keelson::kubelet::devices
