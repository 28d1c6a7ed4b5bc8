// For tests: an allocation problem in words.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "controlplane/scheduler/devices/allocator.h"
#include "controlplane/scheduler/devices/results.h"
#include "controlplane/scheduler/devices/testing/device_objects.h"
#include "controlplane/scheduler/testing/objects.h"

namespace keelson::scheduler::testing {

struct DeviceProblem {
  PoolIndex pools;
  DeviceUses uses;
  std::map<std::string, std::shared_ptr<const resourcev1::DeviceClass>> classes{{"c", MakeClass("c")}};
  SelectorCache selectors;
  NameIds names;
  std::vector<ClaimPlan> plans;
  Allocation found;

  void Slice(const std::string& name, const std::string& spec) { pools.Set(name, MakeSlice(name, spec)); }

  // "request=device" of all claims, in order; "-": no solution; or the error.
  std::string Solve(const std::vector<std::shared_ptr<resourcev1::ResourceClaim>>& claims,
                    const corev1::Node& node = MakeNode("n1"), const SearchLimits& limits = {}) {
    plans.clear();
    for (const auto& claim : claims) {
      auto plan = PlanClaim(
          claim, [this](const std::string& name) { return classes.contains(name) ? classes[name] : nullptr; },
          selectors);
      if (!plan) return plan.error().message();
      plans.push_back(std::move(*plan));
    }
    const NodeFacts facts(node, names);
    const std::vector<const Pool*> of_node = pools.Of(facts.name);
    auto solution = Allocate(facts, plans, of_node, uses, limits);
    if (!solution) return solution.error().message();
    if (!*solution) return "-";
    found = std::move(**solution);
    std::string text;
    for (const ClaimAllocation& claim : found) {
      for (const PickedDevice& picked : claim.devices) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", picked.request->name,
                            picked.pool->devices()[picked.device].device->name());
      }
    }
    return text;
  }
  std::string Solve(const std::string& devices) { return Solve({MakeClaim("a", devices)}); }
  // Marks the devices of the last solution as in use.
  void Use() {
    for (size_t i = 0; i < found.size(); ++i) uses.Add(ToAllocationResult(plans[i], found[i], "n1"));
  }
  std::string Why(const corev1::Node& node = MakeNode("n1")) {
    const NodeFacts facts(node, names);
    return Explain(facts, plans, pools.Of(facts.name), uses);
  }
};

}  // namespace keelson::scheduler::testing
