#include "controlplane/scheduler/devices/results.h"

#include <algorithm>
#include <map>
#include <set>

#include "lib/api/meta.h"

namespace keelson::scheduler {

namespace {

void AddResult(const PickedDevice& picked, resourcev1::DeviceAllocationResult& out) {
  const PoolDevice& device = picked.pool->devices()[picked.device];
  const RequestPlan& request = *picked.request;
  resourcev1::DeviceRequestAllocationResult& result = *out.add_results();
  result.set_request(request.name);
  result.set_driver(device.slice->spec().driver());
  result.set_pool(device.slice->spec().pool().name());
  result.set_device(device.device->name());
  if (request.admin_access) result.set_admin_access(true);
  *result.mutable_tolerations() = *request.tolerations;
  *result.mutable_binding_conditions() = device.device->binding_conditions();
  *result.mutable_binding_failure_conditions() = device.device->binding_failure_conditions();
  if (!picked.share) return;
  result.set_share_id(api::NewUid());
  for (const auto& [name, amount] : picked.consumed) {
    (*result.mutable_consumed_capacity())[name] = amount.ToQuantity();
  }
}

// The configuration of each class once, for all requests of it; then that of the claim, as far as its requests were taken.
void AddConfig(const ClaimPlan& claim, const ClaimAllocation& allocation,
               resourcev1::DeviceAllocationResult& out) {
  std::map<std::string, std::pair<int, int>> of_class;
  std::set<std::string> taken;  // names of requests, and of the alternatives taken
  for (size_t i = 0; i < claim.requests.size(); ++i) {
    const RequestGroup& group = claim.requests[i];
    const RequestPlan& request = group.alternatives[allocation.alternatives[i]];
    taken.insert({group.name, request.name});
    const resourcev1::DeviceClass& device_class = *request.device_class;
    const auto [known, added] =
        of_class.try_emplace(device_class.metadata().name(), out.config_size(), out.config_size());
    if (added) {
      for (const resourcev1::DeviceClassConfiguration& config : device_class.spec().config()) {
        resourcev1::DeviceAllocationConfiguration& to = *out.add_config();
        to.set_source("FromClass");
        *to.mutable_device_configuration() = config.device_configuration();
      }
      known->second.second = out.config_size();
    }
    for (int c = known->second.first; c < known->second.second; ++c) {
      out.mutable_config(c)->add_requests(request.name);
    }
  }
  for (const resourcev1::DeviceClaimConfiguration& config : claim.claim->spec().devices().config()) {
    const auto& names = config.requests();
    const bool applies =
        names.empty() ||
        std::any_of(names.begin(), names.end(), [&](const std::string& one) { return taken.contains(one); });
    if (!applies) continue;
    resourcev1::DeviceAllocationConfiguration& to = *out.add_config();
    to.set_source("FromClaim");
    *to.mutable_requests() = names;
    *to.mutable_device_configuration() = config.device_configuration();
  }
}

void AddNew(const google::protobuf::RepeatedPtrField<corev1::NodeSelectorRequirement>& from,
            google::protobuf::RepeatedPtrField<corev1::NodeSelectorRequirement>& to) {
  for (const corev1::NodeSelectorRequirement& one : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const corev1::NodeSelectorRequirement& other) {
      return other.SerializeAsString() == one.SerializeAsString();
    });
    if (!known) *to.Add() = one;
  }
}

// Empty: the devices can be used from all nodes.
corev1::NodeSelector NodesOf(const ClaimAllocation& allocation, const std::string& node) {
  corev1::NodeSelector out;
  corev1::NodeSelectorTerm& term = *out.add_node_selector_terms();
  for (const PickedDevice& picked : allocation.devices) {
    const PoolDevice& device = picked.pool->devices()[picked.device];
    const resourcev1::ResourceSliceSpec& spec = device.slice->spec();
    const bool by_device = spec.per_device_node_selection();
    if (device.device->binds_to_node() || !device.target.node().empty()) {
      corev1::NodeSelector one;
      corev1::NodeSelectorRequirement& name = *one.add_node_selector_terms()->add_match_fields();
      name.set_key("metadata.name");
      name.set_operator_("In");
      name.add_values(node);
      return one;
    }
    const corev1::NodeSelector& selector = by_device ? device.device->node_selector() : spec.node_selector();
    if (selector.node_selector_terms().empty()) continue;
    AddNew(selector.node_selector_terms(0).match_fields(), *term.mutable_match_fields());
    AddNew(selector.node_selector_terms(0).match_expressions(), *term.mutable_match_expressions());
  }
  if (term.match_fields().empty() && term.match_expressions().empty()) out.clear_node_selector_terms();
  return out;
}

}  // namespace

resourcev1::AllocationResult ToAllocationResult(const ClaimPlan& claim, const ClaimAllocation& allocation,
                                                const std::string& node) {
  resourcev1::AllocationResult out;
  for (const PickedDevice& picked : allocation.devices) AddResult(picked, *out.mutable_devices());
  AddConfig(claim, allocation, *out.mutable_devices());
  corev1::NodeSelector nodes = NodesOf(allocation, node);
  if (!nodes.node_selector_terms().empty()) *out.mutable_node_selector() = std::move(nodes);
  return out;
}

int64_t ScoreOf(const std::vector<ClaimPlan>& claims, const Allocation& allocation) {
  int64_t score = 0;
  for (size_t c = 0; c < claims.size(); ++c) {
    for (size_t i = 0; i < claims[c].requests.size(); ++i) {
      if (!claims[c].requests[i].first_available) continue;
      score += kFirstAvailableMaxSize - static_cast<int64_t>(allocation[c].alternatives[i]);
    }
  }
  return score;
}

}  // namespace keelson::scheduler
